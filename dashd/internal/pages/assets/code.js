// Colours in code, by highlight.js 11.12.0 in hljs/: the ES modules of the npm package @highlightjs/cdn-assets as they are.
// They are loaded once there is code in a language that they know.

const maxCode = 50_000; // characters

const languages = ["bash", "c", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json", "python", "rust", "sql", "typescript", "xml", "yaml"];
const aliases = { sh: "bash", shell: "bash", console: "bash", zsh: "bash", h: "c", patch: "diff", docker: "dockerfile", golang: "go", toml: "ini", js: "javascript", jsx: "javascript", mjs: "javascript", py: "python", rs: "rust", ts: "typescript", tsx: "typescript", html: "xml", svg: "xml", yml: "yaml" };

// colour colours the blocks of code that name their language.
export async function colour(body) {
  for (const code of body.querySelectorAll('pre > code[class^="language-"]')) {
    const named = code.className.slice("language-".length).toLowerCase();
    const language = aliases[named] ?? named;
    if (!languages.includes(language) || code.textContent.length > maxCode) continue;
    try {
      const { default: hljs } = await import("./hljs/core.js");
      if (!hljs.getLanguage(language)) hljs.registerLanguage(language, (await import(`./hljs/${language}.js`)).default);
      code.innerHTML = hljs.highlight(code.textContent, { language, ignoreIllegals: true }).value; // it escapes the text
    } catch {
      return; // without a connection the code stays as it is
    }
  }
}
