// The frozen tables of case, made by Scripts/case-tables from Unicode
// 14.0.0: what stands for a character when case does not count. They never change, as
// an index's rows would then no longer be those of its documents; other tables are another
// comparison. Numbers have base 36; the first of each group counts from the group before.

enum CaseTables {
  /// Characters that one other stands for: the first, how many, how far apart, how far that is.
  static let foldings = """
    1t.q.1.w 38.1.1.lj b.n.1.w o.7.1.w 14.o.2.1 1e.3.2.1 7.8.2.1 h.n.2.1 1a.1.1.-3d 1.3.2.1 \
    6.1.1.-7g 2.1.1.5u 1.2.2.1 4.1.1.5q 1.1.1.1 2.2.1.5p 2.1.1.1 3.1.1.27 1.1.1.5m 1.1.1.5n \
    1.1.1.1 2.1.1.5p 1.1.1.5r 2.1.1.5v 1.1.1.5t 1.1.1.1 4.1.1.5v 1.1.1.5x 2.1.1.5y 1.3.2.1 \
    6.1.1.62 1.1.1.1 2.1.1.62 3.1.1.1 2.1.1.62 1.1.1.1 2.2.1.61 2.2.2.1 4.1.1.63 1.1.1.1 4.1.1.1 \
    8.1.1.2 1.1.1.1 2.1.1.2 1.1.1.1 2.1.1.2 1.9.2.1 j.9.2.1 j.1.1.2 1.2.2.1 4.1.1.-2p 1.1.1.-1k \
    1.k.2.1 14.1.1.-3m 2.9.2.1 o.1.1.8bv 1.1.1.1 2.1.1.-4j 1.1.1.8bs 3.1.1.1 2.1.1.-5f 1.1.1.1x \
    1.1.1.1z 1.5.2.1 73.1.1.38 17.2.2.1 6.1.1.1 9.1.1.38 7.1.1.12 2.3.1.11 4.1.1.1s 2.2.1.1r \
    3.h.1.w i.9.1.w v.1.1.1 d.1.1.8 1.1.1.-u 1.1.1.-p 4.1.1.-f 1.1.1.-m 2.c.2.1 o.1.1.-1i \
    1.1.1.-1c 3.1.1.-1o 1.1.1.-1s 2.1.1.1 2.1.1.-7 1.1.1.1 3.3.1.-3m 3.g.1.28 g.w.1.w 28.h.2.1 \
    16.r.2.1 1i.1.1.f 1.7.2.1 f.1c.2.1 2p.12.1.1c 29b.12.1.5ls 13.1.1.5ls 6.1.1.5ls mj.6.1.-8 \
    1oo.1.1.-4su 1.1.1.-4st 1.1.1.-4sk 1.2.1.-4si 2.1.1.-4sj 1.1.1.-4sc 1.1.1.-4ro 1.1.1.r7n \
    8.17.1.-2bk 19.3.1.-2bk 8z.23.2.1 4b.1.1.-1m 5.1c.2.1 2w.8.1.-8 g.6.1.-8 g.8.1.-8 g.8.1.-8 \
    g.6.1.-8 h.4.2.-8 f.8.1.-8 28.2.1.-8 2.2.1.-22 4.1.1.-5j9 a.4.1.-2e g.2.1.-8 2.2.1.-2s \
    e.2.1.-8 2.2.1.-34 2.1.1.-7 c.2.1.-3k 2.2.1.-3i 8c.1.1.-5st 4.1.1.-6gv 1.1.1.-6di 7.1.1.s \
    1a.g.1.g z.1.1.1 mr.q.1.q 1fu.1c.1.1c 2o.1.1.1 2.1.1.-8af 1.1.1.-2xy 1.1.1.-89z 3.3.2.1 \
    6.1.1.-8bg 1.1.1.-8al 1.1.1.-8bj 1.1.1.-8bi 2.1.1.1 3.1.1.1 9.2.1.-8cf 2.1e.2.1 2z.2.2.1 \
    7.1.1.1 nym.n.2.1 1s.e.2.1 4i.7.2.1 g.v.2.1 1z.2.2.1 4.1.1.-r9g 1.5.2.1 d.1.1.1 2.1.1.-wmg \
    3.2.2.1 6.a.2.1 k.1.1.-wn8 1.1.1.-wnj 1.1.1.-wnf 1.1.1.-wn5 1.1.1.-wn8 2.1.1.-wlu 1.1.1.-wmi \
    1.1.1.-wlx 1.1.1.ps 1.8.2.1 g.1.1.-1c 1.1.1.-wn7 1.1.1.-raw 1.2.2.1 9.1.1.1 6.2.2.1 v.1.1.1 \
    or.28.1.-tzk gj5.q.1.w yn.14.1.14 4w.10.1.14 5c.j.2.13 1.5.2.13 c.7.2.13 g.3.2.13 8.1.1.13 \
    1d7.1f.1.1s 2e8.w.1.w gww.w.1.w o8w.y.1.y
    """

  /// Characters that several others stand for.
  static let expansions = """
    67.37.37 29.2x.lj p.jg.32 4n.2y.lo bk.qh.lk.ld w.qt.lk.ld d3.12d.136 4y7.2w.mp 1.38.lk 1.3b.lm \
    1.3d.lm 1.2p.ji 4.37.37 4y.qt.lv 2.qt.lv.lc 2.qt.lv.ld 2.qt.lv.n6 16.64g.qh 1.64h.qh 1.64i.qh \
    1.64j.qh 1.64k.qh 1.64l.qh 1.64m.qh 1.64n.qh 1.64g.qh 1.64h.qh 1.64i.qh 1.64j.qh 1.64k.qh \
    1.64l.qh 1.64m.qh 1.64n.qh 1.65c.qh 1.65d.qh 1.65e.qh 1.65f.qh 1.65g.qh 1.65h.qh 1.65i.qh \
    1.65j.qh 1.65c.qh 1.65d.qh 1.65e.qh 1.65f.qh 1.65g.qh 1.65h.qh 1.65i.qh 1.65j.qh 1.674.qh \
    1.675.qh 1.676.qh 1.677.qh 1.678.qh 1.679.qh 1.67a.qh 1.67b.qh 1.674.qh 1.675.qh 1.676.qh \
    1.677.qh 1.678.qh 1.679.qh 1.67a.qh 1.67b.qh 3.67k.qh 1.q9.qh 1.q4.qh 2.q9.n6 1.q9.n6.qh \
    5.q9.qh 6.67o.qh 1.qf.qh 1.q6.qh 2.qf.n6 1.qf.n6.qh 5.qf.qh 6.qh.lk.lc 1.qh.lk.ld 3.qh.n6 \
    1.qh.lk.n6 b.qt.lk.lc 1.qt.lk.ld 1.qp.lv 2.qt.n6 1.qt.lk.n6 b.67w.qh 1.qx.qh 1.r2.qh 2.qx.n6 \
    1.qx.n6.qh 5.qx.qh 179g.2u.2u 1.2u.2x 1.2u.30 1.2u.2u.2x 1.2u.2u.30 1.37.38 1.37.38 d.12s.12u \
    1.12s.12d 1.12s.12j 1.132.12u 1.12s.12l
    """
}
