# Real picture files for the demo: some of this machine's, or, if there are none, made by a library.
# Sourced after prepare.sh, not run.

# Copies up to eight PNG and JPEG files with the size of photos into $1.
collect_pictures() {
  _number=0
  for _place in "$HOME/Pictures" "/System/Library/Desktop Pictures" /Library/User\ Pictures \
    /usr/share/backgrounds /usr/share/pixmaps /usr/share/doc /usr/share /usr/local/share; do
    [ -d "$_place" ] || continue
    _found=$(find "$_place" -type f \( -name '*.png' -o -name '*.jpg' -o -name '*.jpeg' \) \
      -size +8 -size -16000 2>/dev/null | head -n 8)
    while IFS= read -r _file; do
      [ -n "$_file" ] && [ "$_number" -lt 8 ] || continue
      _number=$((_number + 1))
      cp "$_file" "$1/$_number.${_file##*.}" 2>/dev/null || _number=$((_number - 1))
    done <<END
$_found
END
  done
  [ "$_number" -ge 6 ]
}

# Lets Pillow draw six pictures into $1.
draw_pictures() {
  python3 -c 'import PIL' 2>/dev/null ||
    install_package python3-pil python3-pillow pillow
  # Packages are installed for the system's own Python.
  _python=python3
  "$_python" -c 'import PIL' 2>/dev/null || _python=/usr/bin/python3
  "$_python" - "$1" <<'END'
import sys
from PIL import Image, ImageDraw

for number in range(6):
    side = 200 + 150 * number
    gradient = Image.radial_gradient("L").resize((side, side * 3 // 4))
    noise = Image.effect_noise((side, side * 3 // 4), 60)
    plain = Image.new("L", gradient.size, 40 * number)
    picture = Image.merge("RGB", (gradient, noise, plain))
    ImageDraw.Draw(picture).text((20, 20), f"picture {number + 1}", fill="white")
    suffix = "png" if number % 2 == 0 else "jpg"
    picture.save(f"{sys.argv[1]}/{number + 1}.{suffix}")
END
}

# Sets $pictures to a directory with picture files.
find_pictures() {
  pictures=.build/pictures
  _count=$(find "$pictures" -type f 2>/dev/null | wc -l)
  [ "$_count" -lt 4 ] || return 0
  rm -rf "$pictures"
  mkdir -p "$pictures"
  if collect_pictures "$pictures"; then
    say "Took pictures of this machine; they are in $pictures."
  else
    rm -f "$pictures"/*
    say "Found too few pictures on this machine; having Pillow draw some."
    draw_pictures "$pictures"
  fi
}
