package tools

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/gated/internal/running/groupfiles"
	"arizuko/gated/internal/running/runtime"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// addFiles gives the groups folders, a file each way, and an answer that is sent.
func (f *fixture) addFiles() {
	f.data = f.t.TempDir()
	f.dir = filepath.Join(f.t.TempDir(), folder)
	f.services.Files = &groupfiles.Files{Data: f.data, Dir: func(string) (string, runtime.User, error) { return f.dir, runtime.User{}, nil }}
	media := filepath.Join(f.data, "media", "202611")
	err := errors.Join(os.MkdirAll(filepath.Join(f.dir, "out"), 0o700), os.MkdirAll(media, 0o700),
		os.WriteFile(filepath.Join(f.dir, "out", "report.txt"), []byte("all is well"), 0o600), os.WriteFile(filepath.Join(media, "7-0-cat.txt"), []byte("meow"), 0o600))
	if err != nil {
		f.t.Fatal(err)
	}
	f.answer, f.foreignAnswer = f.sent(folder, chat, "100"), f.sent("other", foreignChat, "200")
	f.file = f.ask(folder, chat, "see this")
	f.setFiles(f.file, 0, msg.Attachment{Path: "media/202611/7-0-cat.txt", Name: "cat.txt", MIME: "text/plain", Size: 4}, msg.Attachment{Name: "big", Error: "larger than 20 MiB (MEDIA_MAX)"})
}

// sent stores an answer of a group that was sent.
func (f *fixture) sent(folder, chat, platformID string) *msg.Message {
	f.t.Helper()
	m := f.queued(folder, chat)
	f.settle(m, msg.OutSent, platformID)
	return m
}

func (f *fixture) queued(folder, chat string) *msg.Message {
	f.t.Helper()
	m := &msg.Message{
		ChatJID: chat, Direction: msg.Out, Content: "an answer", Sender: "agent:" + folder, Source: msg.SourceAgent, OutState: msg.OutQueued,
		ThreadID: "12", Topic: "12", Timestamp: 1, ReceivedAt: 1,
	}
	f.put(m)
	return m
}

func (f *fixture) settle(m *msg.Message, state msg.OutState, platformID string) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(m.ID, 1, 1); err != nil {
			return err
		}
		if err := tx.PutDelivery(store.Delivery{MessageID: m.ID, State: state, PlatformID: platformID}, 1); err != nil {
			return err
		}
		return tx.SettleOutbound(m.ID, state, platformID)
	})
}

// setFiles stores the files of a message, of which some are still to be downloaded.
func (f *fixture) setFiles(m *msg.Message, pending int, files ...msg.Attachment) {
	f.t.Helper()
	text := storetest.Must(json.Marshal(files))(f.t)
	f.exec(`UPDATE messages SET attachments = ?, pending_files = ? WHERE id = ?`, string(text), pending, m.ID)
}

// exec runs a statement on a connection of its own.
func (f *fixture) exec(statement string, args ...any) {
	f.t.Helper()
	if _, err := f.db().Exec(statement, args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) db() *sql.DB {
	f.t.Helper()
	db := storetest.Must(sql.Open("sqlite3", f.path+"?_busy_timeout=10000"))(f.t)
	f.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (f *fixture) row(id int64) *msg.Message {
	f.t.Helper()
	m, err := f.st.Message(f.t.Context(), id)
	if err != nil || m == nil {
		f.t.Fatalf("row %d: %v, %v", id, m, err)
	}
	return m
}

// last is the newest row.
func (f *fixture) last() *msg.Message {
	f.t.Helper()
	id := storetest.Must(f.st.LastMessageID(f.t.Context()))(f.t)
	return f.row(id)
}

func TestSendFile_CopyIsSent(t *testing.T) {
	f := newFixture(t)
	f.works("send_file", `{"path":"out/report.txt","caption":"the report, hunter2","name":"r/1.txt"}`)
	m := f.last()
	if m.Kind != msg.KindFile || m.Content != "the report, [redacted]" || m.ChatJID != chat || m.Source != msg.SourceTool || m.OutState != msg.OutQueued || m.TurnID != f.turn.ID {
		t.Errorf("%+v", m)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "out", "report.txt"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(f.data, m.Attachments[0].Path))
	if a := m.Attachments[0]; err != nil || string(got) != "all is well" || a.Name != "r_1.txt" || a.Size != 11 || a.MIME != "text/plain" {
		t.Errorf("%+v: %q, %v", a, got, err)
	}
}

func TestSendFile_Refused(t *testing.T) {
	f := newFixture(t)
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(f.dir, "link")), os.WriteFile(filepath.Join(f.dir, "big"), nil, 0o600),
		os.Truncate(filepath.Join(f.dir, "big"), msg.MaxUploadTelegram(false)+1)); err != nil {
		t.Fatal(err)
	}
	before := f.last().ID
	for path, why := range map[string]string{"../x": "not inside", "link": "is a link", "gone": "no file", "out": "not a regular file", "big": "at most"} {
		f.refused("send_file", fmt.Sprintf(`{"path":%q}`, path), why)
	}
	f.exec(`INSERT INTO cursors (daemon, key, value) VALUES ('teled', ?, 'true')`, msg.LocalServer)
	f.refused("send_file", `{"path":"big"}`, "is the limit") // of the day: the server of that account takes the file
	f.exec(`INSERT INTO messages (chat_jid, direction, kind, sender, content, attachments, timestamp, received_at, source, out_state)
		VALUES (?, 'out', 'file', 'agent:acme', '', ?, 1, ?, 'tool', 'sent')`, chat, fmt.Sprintf(`[{"path":"media/x","size":%d}]`, f.services.MediaDaily), f.services.now())
	f.refused("send_file", `{"path":"out/report.txt"}`, "is the limit")
	if id := f.last().ID; id != before+1 {
		t.Errorf("%d rows were written", id-before-1)
	}
}

func TestEditMessage_OwnMessage_IsEditedInItsThread(t *testing.T) {
	f := newFixture(t)
	queued := f.queued(folder, chat)
	for _, of := range []*msg.Message{f.answer, queued} {
		f.works("edit_message", fmt.Sprintf(`{"message_id":%d,"text":"now **so**"}`, of.ID))
		m := f.last()
		if m.Kind != msg.KindEdit || m.DerivedFrom != of.ID || m.TargetID != f.row(of.ID).PlatformID || m.Content != "now **so**" || m.ThreadID != "12" || m.Topic != "12" || m.OutState != msg.OutQueued {
			t.Errorf("%+v", m)
		}
	}
}

func TestEditMessage_Refused(t *testing.T) {
	f := newFixture(t)
	failed, unknown := f.queued(folder, chat), f.queued(folder, chat)
	f.settle(failed, msg.OutFailed, "")
	f.settle(unknown, msg.OutSent, "")
	foreign := f.sent("other", chat, "300")
	elsewhere := f.sent(folder, "telegram:-9", "400")
	notice := f.sent(folder, chat, "500")
	f.exec(`UPDATE messages SET source = 'notice' WHERE id = ?`, notice.ID)
	edit := f.sent(folder, chat, "600")
	f.exec(`UPDATE messages SET kind = 'edit' WHERE id = ?`, edit.ID)
	for id, why := range map[int64]string{
		f.own.ID: "not one that you sent", failed.ID: "never sent", unknown.ID: "no id on the platform", foreign.ID: "not one that you sent",
		elsewhere.ID: "", notice.ID: "not one that you sent", edit.ID: "no text to edit", 9999: "no message 9999",
	} {
		f.refused("edit_message", fmt.Sprintf(`{"message_id":%d,"text":"x"}`, id), why)
	}
}

// A change of a message that the platform no longer knows by its id is refused, so that the agent learns of it.
func TestChange_MessageOfFormerBotOrGroup_Refused(t *testing.T) {
	f := parallel(t)
	bot := func(id string) { f.write(func(tx *store.Tx) error { return tx.PutBot("teled", id, 1) }) }
	change := func(of *msg.Message, want string) {
		t.Helper()
		for tool, with := range map[string]string{"edit_message": `"text":"x"`, "react": `"emoji":"👍"`} {
			arguments := fmt.Sprintf(`{"message_id":%d,%s}`, of.ID, with)
			if want == "" {
				f.works(tool, arguments)
			} else {
				f.refused(tool, arguments, want)
			}
		}
	}
	bot("1")
	change(f.answer, "")
	bot("2")
	change(f.answer, "another bot")
	change(f.sent(folder, chat, "b2.100"), "")
	change(f.queued(folder, chat), "")
	change(f.sent(folder, chat, "old:101"), "before the group became a supergroup")
}

func TestReact(t *testing.T) {
	f := newFixture(t)
	f.exec(`UPDATE messages SET platform_id = '55' WHERE id = ?`, f.own.ID)
	derived := f.ask(folder, chat, "without the prefix")
	f.exec(`UPDATE messages SET derived_from = ? WHERE id = ?`, f.own.ID, derived.ID)
	for _, tt := range []struct {
		of            int64
		emoji, remove string
		target        string
		from          int64
		content       string
	}{
		{f.own.ID, "👍", "", "55", 0, "👍"}, {f.own.ID, ":tada:", "", "55", 0, "🎉"}, {f.own.ID, "👍", `,"remove":true`, "55", 0, "-👍"},
		{f.answer.ID, "✅", "", "100", f.answer.ID, "✅"}, {derived.ID, "👀", "", "55", 0, "👀"},
	} {
		f.works("react", fmt.Sprintf(`{"message_id":%d,"emoji":%q%s}`, tt.of, tt.emoji, tt.remove))
		if m := f.last(); m.Kind != msg.KindReaction || m.TargetID != tt.target || m.DerivedFrom != tt.from || m.Content != tt.content || m.ThreadID != f.row(tt.of).ThreadID {
			t.Errorf("%+v: %+v", tt, m)
		}
	}
	f.refused("react", `{"message_id":OWN_MESSAGE,"emoji":"🍕"}`, "give one of")
	f.refused("react", `{"message_id":OWN_FILE,"emoji":"👍"}`, "not on the platform")
	f.in("telegram+work:-5", "", "") // the emoji are those of the platform, whatever the account
	f.refused("react", `{"message_id":OWN_MESSAGE,"emoji":"🍕"}`, "give one of")
}

func TestGetAttachment_Stored_IsCopiedIntoTheFolder(t *testing.T) {
	f := newFixture(t)
	var out getAttachmentOut
	if err := json.Unmarshal([]byte(f.works("get_attachment", `{"message_id":OWN_FILE}`)), &out); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(f.dir, out.Path)); string(got) != "meow" || err != nil || out.Name != "cat.txt" || out.Size != 4 {
		t.Errorf("%+v: %q, %v", out, got, err)
	}
	f.shows("list_active_context_objects", `{}`, f.fill(`"media.document:OWN_FILE"`), "activated_by_media_inspection")
	f.refused("get_attachment", `{"message_id":OWN_FILE,"n":2}`, "larger than 20 MiB")
	f.refused("get_attachment", `{"message_id":OWN_FILE,"n":3}`, "has 2 files")
	f.refused("get_attachment", `{"message_id":OWN_MESSAGE}`, "has no files")
	f.setFiles(f.file, 0, msg.Attachment{Path: "media/202611/gone", Name: "gone.txt"})
	f.refused("get_attachment", `{"message_id":OWN_FILE}`, "cannot be copied")
	f.exec(`UPDATE messages SET disposition = 'dropped', reason = 'no_access' WHERE id = ?`, f.file.ID)
	f.refused("get_attachment", `{"message_id":OWN_FILE}`, "not for your group")
}

// A file of another topic can be had, but this conversation is not about it.
func TestGetAttachment_OfAnotherTopic_IsNoActiveObject(t *testing.T) {
	f := newFixture(t)
	f.exec(`UPDATE messages SET thread_id = '9' WHERE id = ?`, f.file.ID)
	f.works("get_attachment", `{"message_id":OWN_FILE}`)
	f.shows("list_active_context_objects", `{}`, `"objects":[]`)
}

func TestGetAttachment_QuotedPost_IsFetchedInItsChatAlone(t *testing.T) {
	f := newFixture(t)
	f.exec(`UPDATE messages SET disposition = 'observed', reason = 'quoted', routed_to = NULL WHERE id = ?`, f.file.ID)
	f.shows("get_attachment", `{"message_id":OWN_FILE}`, "inbox/")
	f.exec(`UPDATE messages SET reason = 'no_access', disposition = 'dropped' WHERE id = ?`, f.file.ID)
	f.refused("get_attachment", `{"message_id":OWN_FILE}`, "not for your group")
}

// download calls get_attachment for a file that is not downloaded, and returns once that is wanted.
func (f *fixture) download() (answer <-chan string) {
	f.t.Helper()
	f.setFiles(f.file, 1, msg.Attachment{Ref: "file-1", Name: "cat.txt"})
	f.exec(`UPDATE messages SET files_wanted = 0 WHERE id = ?`, f.file.ID)
	done := make(chan string, 1)
	go func() {
		text, _ := f.call("get_attachment", `{"message_id":OWN_FILE}`)
		done <- text
	}()
	storetest.Eventually(f.t, "the file to be wanted", func() bool {
		wanted, err := adapterrows.WantedFiles(f.t.Context(), f.st.Reader, "telegram", 10)
		return err == nil && len(wanted) == 1 && wanted[0].ID == f.file.ID
	})
	return done
}

// The adapter downloads a file of an observed message once it is wanted.
func TestGetAttachment_NotDownloaded_IsWantedAndWaitedFor(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		result msg.Attachment
		want   string
	}{
		{msg.Attachment{Path: "media/202611/7-0-cat.txt", Name: "cat.txt"}, "inbox/"},
		{msg.Attachment{Name: "cat.txt", Error: "gone from the platform"}, "gone from the platform"},
	} {
		done := f.download()
		f.write(func(tx *store.Tx) error { return tx.PutFiles(f.file.ID, []msg.Attachment{tt.result}) })
		if text := <-done; !strings.Contains(text, tt.want) {
			t.Errorf("%s, want %s", text, tt.want)
		}
	}
}

func TestGetAttachment_TurnCancelled_Ends(t *testing.T) {
	f := newFixture(t)
	done := f.download()
	f.access.Close()
	<-done
}
