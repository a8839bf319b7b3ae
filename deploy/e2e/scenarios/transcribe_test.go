package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// voiceNote stores a voice note, whose file is there, and returns its row.
func voiceNote(f *harness.Fixture, text string) int64 {
	f.T.Helper()
	if err := os.MkdirAll(filepath.Join(f.Data, "media"), 0o700); err != nil {
		f.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Data, "media", "voice"), []byte("sound"), 0o600); err != nil {
		f.T.Fatal(err)
	}
	return f.Put(msg.Message{ChatJID: "telegram:5", Content: text, Attachments: []msg.Attachment{
		{Path: "media/voice", Name: "v.ogg", MIME: "audio/ogg", Size: 5, Duration: 3},
	}})[0]
}

func TestTranscribe_GatedKilledMeanwhile_AgentGetsOneTranscript(t *testing.T) {
	f := start(t, harness.Options{})
	shared, err := os.MkdirTemp("", "transcribe") //nolint:usetesting // the agents' user reaches no t.TempDir
	if err == nil {
		err = os.Chmod(shared, 0o777)
	}
	f.OK(err)
	t.Cleanup(func() { _ = os.RemoveAll(shared) })
	begun := filepath.Join(shared, "begun")
	f.Exec(`UPDATE registered_groups SET config = '{"transcribe":"test -s {file} && echo x >>` + begun + `; [ $(wc -l <` + begun + `) -gt 1 ] || sleep 1000; echo heard words"}' WHERE folder = 'main'`)
	id := voiceNote(f, "listen")
	f.Until("the command to begin", func() bool { info, err := os.Stat(begun); return err == nil && info.Size() > 0 })
	f.Kill(harness.Gated)
	f.StartDaemon(harness.Gated)
	f.WaitReady(harness.Gated)
	f.Answer(id)
	if got := strings.Join(f.Query(`SELECT state || ' ' || text FROM transcripts`), "; "); got != "done heard words" {
		t.Errorf("transcripts: %s", got)
	}
}

func TestTranscribe_GatedKilledAtEachStep_AgentGetsOneTranscript(t *testing.T) {
	need.Verify(t)
	f := start(t, harness.Options{})
	f.Exec(`UPDATE registered_groups SET config = '{"transcribe":"cat {file}"}' WHERE folder = 'main'`)
	points := []fp.Point{fp.PutTurn.Before(), fp.PutTurn.After(), fp.HoldTranscript.Before(), fp.HoldTranscript.After(),
		fp.Transcribing, fp.Transcribed, fp.EndTranscript.Before(), fp.EndTranscript.After()}
	for i, point := range points {
		var id int64
		killGatedAt(f, point, func() { id = voiceNote(f, fmt.Sprintf("listen %d", i)) })
		if got := f.Answer(id); strings.Count(got, "Transcript: sound\n") != 1 {
			t.Errorf("killed at %s, the agent said %q", point, got)
		}
		if got := strings.Join(f.Query(fmt.Sprintf(`SELECT state || ' ' || text FROM transcripts WHERE message_id = %d`, id)), "; "); got != "done sound" {
			t.Errorf("killed at %s: %s", point, got)
		}
	}
	if left, err := os.ReadDir(filepath.Join(f.Data, "run", "transcribe")); err != nil || len(left) > 0 {
		t.Errorf("folders of jobs are left: %v, %v", left, err)
	}
}

func TestTranscribe_CommandHangs_MessageIsAnsweredAtDeadline(t *testing.T) {
	f := start(t, harness.Options{})
	f.Exec(`UPDATE registered_groups SET config = '{"transcribe":"sleep 1000; cat {file}","timeouts":{"transcribe":"1s"}}' WHERE folder = 'main'`)
	f.Answer(voiceNote(f, "listen"))
	if got := strings.Join(f.Query(`SELECT state || ' ' || error FROM transcripts`), "; "); got != "failed "+msg.TranscriptLate {
		t.Errorf("transcripts: %s", got)
	}
}
