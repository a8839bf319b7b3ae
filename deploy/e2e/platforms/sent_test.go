package platforms

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// sent is an example of what a user sends, as the platform sends it to the adapter.
type sent struct {
	What   string                     `json:"what"`
	Update map[string]json.RawMessage `json:"update"` // Telegram's
	Type   string                     `json:"type"`   // Discord's
	Data   json.RawMessage            `json:"data"`
	Event  json.RawMessage            `json:"event"` // Slack's
	id     string
}

// slackExample is the id of all examples of Slack.
const slackExample = "1764000001.000100"

// Everything in the READMEs' tables of what users send goes through the adapter's process, and is stored as the converter
// made it: with its verb and as many files.
func TestSent_ExamplesOfTheREADMEs_AreStored(t *testing.T) {
	t.Parallel()
	telegram := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	discord := chatsim.NewDiscord(chatsim.Size{}, discordOptions())
	slack := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	inject := map[string]func(sent){
		"teled": func(e sent) {
			delete(e.Update, "update_id")
			fields, err := json.Marshal(e.Update)
			if err != nil {
				t.Error(err)
			}
			telegram.Inject(strings.TrimSuffix(strings.TrimPrefix(string(fields), "{"), "}"))
		},
		"discd": func(e sent) { discord.Inject(e.Type, string(e.Data)) },
		"slakd": func(e sent) { slack.Inject(strings.ReplaceAll(string(e.Event), slackExample, e.id)) },
	}
	for name, p := range map[string]chatsim.Platform{"teled": telegram, "discd": discord, "slakd": slack} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startAdapter(t, p)
			folder := filepath.Join("../../..", name, "internal/inbound/testdata")
			if name == "discd" {
				for _, e := range readJSON[sent](t, folder, "home.json") { // the server that the examples come from
					inject[name](e)
				}
			}
			all := readJSON[sent](t, folder, "sent.json")
			for i := range all {
				all[i].id = fmt.Sprintf("1764000001.%06d", 200+i)
				inject[name](all[i])
			}
			for i, want := range readJSON[converted](t, folder, "sent.golden.json") {
				for _, m := range want.Result.Messages {
					m.PlatformID = strings.ReplaceAll(m.PlatformID, slackExample, all[i].id)
					f.wantStoredAs(all[i].What, m)
				}
			}
			f.Exec(`DELETE FROM messages WHERE disposition IS NULL AND direction = 'in'`) // gated never ran
		})
	}
}

// converted is what the converter makes of an example, from its golden file.
type converted struct {
	Result struct{ Messages []convertedRow }
}

type convertedRow struct {
	ChatJID, PlatformID, Verb string
	IsBot                     bool
	PendingFiles              int
}

func readJSON[T any](t *testing.T, folder, name string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (f *fixture) wantStoredAs(what string, want convertedRow) {
	f.T.Helper()
	if want.IsBot || want.Verb == msg.VerbVote {
		return // BOTS is none, and there is no such poll: TestPoll has votes
	}
	id := want.PlatformID
	if n := strings.LastIndex(id, ":"); strings.Count(id, ":") > 1 { // behind it is the number of the update
		id = id[:n] + "%"
	}
	const row = `FROM messages WHERE direction = 'in' AND chat_jid = ? AND platform_id LIKE ?`
	f.Until(what+" to be stored", func() bool { return f.Value(`SELECT count(*) `+row, want.ChatJID, id) == "1" })
	got := f.Value(`SELECT verb || ' ' || pending_files `+row, want.ChatJID, id)
	got = strings.Replace(got, "mention", "message", 1) // the bot of the examples is another one
	if expected := fmt.Sprintf("%s %d", strings.Replace(want.Verb, "mention", "message", 1), want.PendingFiles); got != expected {
		f.T.Errorf("%s is stored as %q, want %q", what, got, expected)
	}
}
