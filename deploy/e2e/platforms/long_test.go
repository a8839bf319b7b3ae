package platforms

import (
	"os"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/testkit/need"
)

// A long table and a long block of code, one below an item of a list, arrive as files after their text: those of
// send_message first, then those of the answer.
func TestLong_GroupWantsFiles_ArriveAfterTheText(t *testing.T) {
	need.Verify(t)
	onEachPlatformWithTools(t, func(f *fixture) {
		f.SetGroup("main", `{"rate":0,"long":"file"}`)
		table, cells := "| name | value |\n|---|---|\n", "name,value\n"
		for range 500 {
			table, cells = table+"| a row | 17 |\n", cells+"a row,17\n"
		}
		lines := strings.Repeat("fmt.Println()\n", 400)
		item := "- an item\n\n  ```go\n  " + strings.ReplaceAll(lines, "\n", "\n  ") + "```\n"
		f.OK(os.WriteFile(f.groupFile("long.md"), []byte("before\n\n"+table+"\n"+item+"\nafter"), 0o644)) //nolint:gosec // the agent has a user of its own
		before := len(f.Arrivals())
		f.ask(f.dm, "read long.md\ncall send_message {\"text\":\"$file\"}")
		var files []chatsim.File
		var order, texts []string
		f.Until("four files to arrive", func() bool {
			files, order, texts = nil, nil, nil
			for _, a := range f.Arrivals()[before:] {
				if len(a.Files) == 0 {
					order, texts = append(order, "text"), append(texts, a.Text)
				}
				for _, file := range a.Files {
					order, files = append(order, file.Name), append(files, file)
				}
			}
			return len(files) == 4
		})
		if want := []string{"text", "table.csv", "code.go", "text", "table.csv", "code.go"}; !slices.Equal(order, want) {
			f.T.Fatalf("arrived %q, want %q", order, want)
		}
		for i, want := range []string{cells, lines, cells, lines} {
			if string(files[i].Data) != want {
				f.T.Errorf("%s has %.60q", files[i].Name, files[i].Data)
			}
		}
		for _, text := range texts {
			for _, want := range []string{"before", "table.csv: 500 rows", "an item", "code.go: 400 lines", "after"} {
				if !strings.Contains(text, want) || strings.Contains(text, "Println") {
					f.T.Errorf("%q is not in the text %.400q", want, text)
				}
			}
		}
	})
}
