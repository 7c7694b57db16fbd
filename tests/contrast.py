"""The lowest contrast of words and their ground on a page, as the accessibility guidelines define it."""

LOWEST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 :
  ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const ground = (one) => { for (let at = one; at; at = at.parentElement) {
  const c = parse(getComputedStyle(at).backgroundColor); if (c.length < 4 || c[3] > 0) return c; }
  return [255, 255, 255]; };
let lowest = [99, ''];
for (const one of document.querySelectorAll('body *')) {
  if (one.closest('svg, script, .skip') || !one.getClientRects().length) continue;
  if (![...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
  const style = getComputedStyle(one), a = light(parse(style.color)), b = light(ground(one));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < lowest[0]) lowest = [ratio, one.outerHTML.slice(0, 120)];
}
return lowest;
"""
