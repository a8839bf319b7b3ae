// Lists the visible texts whose contrast is below WCAG AA (4.5, or 3 for large text).
(() => {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const blend = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    const colour = channels(getComputedStyle(element).backgroundColor);
    return colour[3] === 0 ? ground(element.parentElement) : blend(colour, ground(element.parentElement));
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest(".hidden, noscript, template, script")) continue;
    const style = getComputedStyle(element), background = ground(element);
    let opacity = 1;
    for (let each = element; each; each = each.parentElement) opacity *= getComputedStyle(each).opacity;
    const [r, g, b, a = 1] = channels(style.color);
    const front = luminance(blend([r, g, b, a * opacity], background)), back = luminance(background);
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    if (ratio < (large ? 3 : 4.5)) poor.push(`${ratio.toFixed(2)} of ${JSON.stringify(node.data.trim().slice(0, 40))}`);
  }
  return poor;
})()
