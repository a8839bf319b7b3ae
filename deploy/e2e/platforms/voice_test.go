package platforms

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/executable"
)

// What the programs of the documentation take and print. whisper-cli reads WAV files, and exits with 0 when it cannot
// read one. A recording is its own words here.
const (
	ffmpeg = `while [ $# -gt 1 ]; do [ "$1" = -i ] && in=$2; shift; done
printf 'RIFF    WAVE' | cat - "$in" >"$1"`
	whisper = `while [ $# -gt 0 ]; do case $1 in
	-f) f=$2; shift;; -m) [ "$2" = base.bin ] || { echo "error: failed to initialize whisper context" >&2; exit 3; }; shift;;
	-l) shift;; -nt) plain=1;; -np) quiet=1;; *) echo "error: unknown argument: $1" >&2; exit 1;; esac; shift; done
[ "$quiet" ] || echo "whisper_print_timings: total time = 1 ms" >&2
[ "$(head -c 4 "$f")" = RIFF ] || { echo "error: failed to read audio file '$f'" >&2; exit 0; }
echo; [ "$plain" ] || printf '[00:00:00.000 --> 00:00:02.000]  '
echo " $(tail -c +13 "$f")"`
)

// A voice note of each platform and of the web chat is transcribed. One that is not for the bot is not even downloaded.
func TestVoice_EachPlatformAndWeb_AgentReadsWords(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	bin, err := os.MkdirTemp("", "whisper") //nolint:usetesting // the agents' user reaches no t.TempDir
	i.OK(err)
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	i.OK(os.Chmod(bin, 0o755)) //nolint:gosec // the agents have a user of their own
	executable.Script(t, filepath.Join(bin, "ffmpeg"), ffmpeg)
	executable.Script(t, filepath.Join(bin, "whisper-cli"), whisper)
	i.Instance.Env = append(i.Instance.Env, "PATH="+bin+":"+os.Getenv("PATH"), "AGENT_COMMAND=exec "+i.Instance.Program("demo"))
	fixtures := []*fixture{i.serve(newTelegram()), i.serve(newDiscord()), i.serve(newSlack())}
	i.start("routd", "gated", "dashd", "teled", "discd", "slakd")
	i.connect()
	i.SetGroup("main", `{"rate":0,"transcribe":"ffmpeg -loglevel error -i {file} -ar 16000 -ac 1 voice.wav && whisper-cli -m base.bin -l auto -np -nt -f voice.wav"}`)
	for _, words := range []string{"buy some milk", "[BLANK_AUDIO]"} {
		for _, f := range fixtures {
			f.record(f.dm, words)
		}
		i.upload("recording.webm", "audio/webm;codecs=opus", words)
		i.Until("four transcripts of "+words, func() bool {
			return i.Value(`SELECT count(*) FROM transcripts x JOIN turns t ON t.id = x.turn_id WHERE x.state <> 'wanted' AND t.state = 'done'`) == "4"
		})
		i.WaitIdle()
		want := [2]string{"done", words}
		if words == "[BLANK_AUDIO]" {
			want = [2]string{"failed", msg.TranscriptSilent}
		}
		if got := i.Value(`SELECT count(*) FROM transcripts WHERE state = ? AND text || error = ?`, want[0], want[1]); got != "4" {
			t.Errorf("%s: %q", words, i.Query(`SELECT state || ' ' || text || ' ' || error FROM transcripts`))
		}
		i.Exec(`DELETE FROM transcripts`)
	}
	for _, f := range fixtures {
		heard := 0
		for _, a := range f.Arrivals() {
			heard += strings.Count(a.Text, "Transcript: ")
		}
		if f.waitArrival("Transcript: buy some milk"); heard != 1 {
			t.Errorf("%s: %d transcripts arrived", f.info.Platform, heard)
		}
		f.record(f.NewGroup("others"), "not for the bot")
		f.Until("the note to others to be decided", func() bool {
			return f.Value(`SELECT count(*) FROM messages WHERE platform = ? AND disposition = 'observed' AND pending_files = 1 AND files_wanted = 0`, f.info.Platform) == "1"
		})
	}
	if n := i.Value(`SELECT count(*) FROM transcripts`); n != "0" {
		t.Errorf("%s transcripts of what is not for the bot", n)
	}
}

// record sends a voice note.
func (f *fixture) record(c chatsim.Conversation, words string) {
	f.T.Helper()
	f.do(chatsim.Action{Conversation: c, Verb: msg.VerbMessage, File: &chatsim.File{Data: []byte(words), Voice: true}})
}

// upload sends a file in the web chat, as a browser does.
func (i *instance) upload(name, kind, content string) {
	i.T.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename=%q`, name)}, "Content-Type": {kind}})
	i.OK(err)
	_, _ = part.Write([]byte(content)) // a buffer cannot fail
	i.OK(w.Close())
	req, err := http.NewRequestWithContext(i.T.Context(), http.MethodPost, i.Instance.URL("dashd")+"/chat/main/messages", &b)
	i.OK(err)
	secret, err := i.Instance.Secret()
	i.OK(err)
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	i.OK(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		i.T.Fatalf("the upload got %s", res.Status)
	}
}
