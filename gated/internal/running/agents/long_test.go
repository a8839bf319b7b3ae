package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func longFiles(cfg *Config) { cfg.Defaults.Long = groupconfig.LongFile }

// longAnswer is an order to answer with a block of code, which has a secret of gated.
func longAnswer() string {
	return "!say before\n\n```python\n" + strings.Repeat("key = 'hunter2'\n", 400) + "```\nafter"
}

func TestLong_GroupWantsFiles_BlockIsAFileAfterTheText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change []func(*Config)
		chat   string
		files  bool
	}{
		"a file on Telegram":           {[]func(*Config){longFiles}, "telegram:-5", true},
		"on another account":           {[]func(*Config){longFiles}, "telegram+work:-5", true},
		"in the web chat no limit":     {[]func(*Config){longFiles}, "web:main", false},
		"parts are the default":        {nil, "telegram:-5", false},
		"the chat's day leaves room":   {[]func(*Config){longFiles, func(c *Config) { c.MediaDaily = 5000 }}, "telegram:-5", true},
		"the chat's day leaves none":   {[]func(*Config){longFiles, func(c *Config) { c.MediaDaily = 1000 }}, "telegram:-5", false},
		"the media folder leaves none": {[]func(*Config){longFiles, func(c *Config) { c.MediaQuota = 1000 }}, "telegram:-5", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, tt.change...)
			asked := r.ask(longAnswer(), chat(tt.chat))
			r.await(asked, msg.TurnDone)
			got := must[[]*msg.Message](r)(factrows.TurnReplies(t.Context(), r.st.Reader, asked.ID))
			if !tt.files {
				if len(got) != 1 || !strings.Contains(got[0].Content, "***'\n```\nafter") || len(r.mediaFiles()) != 0 {
					t.Fatalf("%d rows, the text is %.80q, files %q", len(got), got[0].Content, r.mediaFiles())
				}
				return
			}
			if len(got) != 2 || got[0].Content != "before\n\n[code.py: 400 lines]\n\nafter" || got[0].ReplyToID == "" {
				t.Fatalf("%d rows, the text is %.80q", len(got), got[0].Content)
			}
			file := got[1]
			if file.Kind != msg.KindFile || file.Source != msg.SourceAgent || file.ChatJID != tt.chat || file.OutState != msg.OutQueued || len(file.Attachments) != 1 {
				t.Fatalf("the second row is %+v", file)
			}
			a := file.Attachments[0]
			text := must[[]byte](r)(os.ReadFile(filepath.Join(r.cfg.Data, a.Path)))
			if a.Name != "code.py" || a.Size != int64(len(text)) || string(text) != strings.Repeat("key = '***'\n", 400) {
				t.Errorf("%+v has %.60q", a, text)
			}
		})
	}
}

func TestLong_Escalation_AnswersWithTheWholeText(t *testing.T) {
	t.Parallel()
	r := newHarness(t, longFiles)
	now := r.m.env.now()
	m := &msg.Message{
		ChatJID: "group:main", Direction: msg.In, Content: longAnswer(), Source: msg.SourceDelegate, Timestamp: now, ReceivedAt: now,
		ForwardedFrom: &msg.ReturnAddress{Kind: msg.Escalation, Folder: "main/eng", ChatJID: "telegram:-5"},
	}
	asked := r.askRows([]*msg.Message{m}, chat("telegram:-5"), func(t *msg.Turn) { t.Kind = msg.Delegated })
	r.await(asked, msg.TurnDone)
	if files := r.mediaFiles(); len(files) != 0 {
		t.Errorf("files %q", files)
	}
}

// The turn is cancelled while its agent writes: nothing is sent, and no file stays.
func TestLong_CancelledTurn_LeavesNoFile(t *testing.T) {
	t.Parallel()
	r := newHarness(t, longFiles)
	ready, open := r.gate("main", "ready"), r.gate("main", "gate")
	text := strings.TrimPrefix(longAnswer(), "!")
	asked := r.ask("!hold ready gate; " + text)
	ready() // a run that begins with a cancelled turn ends its agent
	r.write(func(tx *store.Tx) error { return rows.CancelTurn(tx, asked.ID, msg.ReasonCancelled, r.m.env.now()) })
	open()
	r.until("the frame is discarded", func() bool { return strings.Contains(r.log.String(), "frame discarded") })
	r.until("its file is removed", func() bool { return len(r.mediaFiles()) == 0 })
}

// mediaFiles are the files in the media folder.
func (r *harness) mediaFiles() (files []string) {
	r.t.Helper()
	_ = filepath.Walk(filepath.Join(r.cfg.Data, "media"), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	return files
}
