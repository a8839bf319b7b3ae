package render_test

import (
	"strings"
	"testing"

	"arizuko/pkg/render"
)

// answer is a typical answer of an agent, about 1 KiB long.
const answer = "## Result\n\nThe **build** failed in `pkg/store` since _yesterday_, see [the log](https://ci.example.org/runs/4711?tab=log#L120):\n\n" +
	"```go\nfunc main() {\n\tif err := run(); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n```\n\n" +
	"1. Run `make test` again, and **look at the _first_ failure** only; the others follow from it.\n" +
	"2. Compare with <https://example.org/a_b_c>:\n   - on Linux it takes 3*4 seconds\n   - on macOS it does *not* start at all\n\n" +
	"> Quoted from the ticket: \"it worked before\".\n> No one knows why.\n\n" +
	"| case | before | after |\n|---|---:|---:|\n| empty | 1 | 2 |\n| small | 10 | 22 |\n| large | 100 | 222 |\n\n" +
	"~~Nothing~~ Something is wrong with snake_case_names & <tags>, || but do not tell ||. Then there is a longer paragraph of plain words, as " +
	"there are in most answers, which goes on for some lines and has a few commas, stops and brackets (like these) in it.\n\n"

func BenchmarkRender(b *testing.B) {
	sizes := []struct {
		name, text string
	}{
		{"1KiB", answer},
		{"64KiB", strings.Repeat(answer, 64<<10/len(answer))},
		{"1MiB", strings.Repeat(answer, 1<<20/len(answer))},
	}
	for _, size := range sizes {
		for name, f := range map[string]func(string){
			"telegram": func(s string) { render.Telegram(s, 4096) },
			"slack":    func(s string) { render.Slack(s, 4000) },
			"discord":  func(s string) { render.Discord(s, 2000) },
			"plain":    func(s string) { render.Plain(s, 4096) },
			"html":     func(s string) { render.HTML(s) },
		} {
			b.Run(name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(size.text)))
				b.ReportAllocs()
				for b.Loop() {
					f(size.text)
				}
			})
		}
	}
}
