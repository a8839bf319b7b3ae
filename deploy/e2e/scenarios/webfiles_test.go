package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

const dashd = "dashd"

// dashdChat is the chat with the group main over HTTP.
type dashdChat struct {
	*harness.Fixture
	secret string
}

func startDashd(t *testing.T, agent string) *dashdChat {
	f := start(t, harness.Options{Agent: agent, Delivers: true})
	f.Restart(dashd)
	secret, err := f.Instance.Secret()
	f.OK(err)
	return &dashdChat{f, secret}
}

// form is a message with files, given as names with their contents.
func form(text, clientID string, files ...string) (body []byte, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("client_id", clientID) // a buffer cannot fail
	_ = w.WriteField("text", text)
	for i := 0; i < len(files); i += 2 {
		part, _ := w.CreateFormFile("file", files[i])
		_, _ = io.WriteString(part, files[i+1])
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// request makes a request; the status is 0 if there is no answer.
func (c *dashdChat) request(ctx context.Context, method, path, kind string, body io.Reader) (status int, answer string) {
	c.T.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.Instance.URL(dashd)+path, body)
	c.OK(err)
	req.Header.Set("Authorization", "Bearer "+c.secret)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", kind)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

// upload sends a message with files, and returns its row, 0 if there is no answer.
func (c *dashdChat) upload(text, clientID string, files ...string) (row int64) {
	c.T.Helper()
	body, kind := form(text, clientID, files...)
	status, answer := c.request(c.T.Context(), "POST", "/chat/main/messages", kind, bytes.NewReader(body))
	var stored struct{ ID int64 }
	if status != 0 && (status != 202 || json.Unmarshal([]byte(answer), &stored) != nil || stored.ID == 0) {
		c.T.Errorf("%d %s", status, answer)
	}
	return stored.ID
}

// wantFiles fails the test unless rows name files with these contents. Files that no row names are gated's to remove.
func (c *dashdChat) wantFiles(contents ...string) {
	c.T.Helper()
	var got []string
	for _, list := range c.Query(`SELECT attachments FROM messages WHERE chat_jid = 'web:main' AND attachments IS NOT NULL`) {
		var files []msg.Attachment
		c.OK(json.Unmarshal([]byte(list), &files))
		for _, file := range files {
			b, err := os.ReadFile(filepath.Join(c.Data, file.Path))
			c.OK(err)
			got = append(got, string(b))
		}
	}
	slices.Sort(got)
	slices.Sort(contents)
	if !slices.Equal(got, contents) {
		c.T.Errorf("rows name files with %.200q; want %.200q", got, contents)
	}
}

// A file goes to the agent by its path, and the agent sends one back, which the chat downloads.
func TestWebFiles_ReachAgentAndComeBack(t *testing.T) {
	c := startDashd(t, caller)
	row := c.upload("read inbox/1-1-notes.txt\ncall send_file {\"path\":\"inbox/1-1-notes.txt\",\"caption\":\"as it came\"}", "c1", "notes.txt", "one, two", "../../b.txt", "three")
	if row != 1 {
		t.Fatalf("row %d", row)
	}
	if answer := toolAnswer(c.Fixture, row); !strings.HasPrefix(answer, "one, two\nsend_file ") || strings.Contains(answer, "error") {
		t.Errorf("the agent answered %q", answer)
	}
	if got, err := os.ReadFile(filepath.Join(c.Data, "groups", "main", "inbox", "1-2-b.txt")); string(got) != "three" || err != nil {
		t.Errorf("the second file: %q, %v", got, err)
	}
	c.WaitIdle()
	status, answer := c.request(t.Context(), "GET", "/chat/main/messages", "", nil)
	var page struct {
		Messages []struct {
			Direction, Content string
			Files              []struct {
				Name, URL string
				Size      int64
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &page); status != 200 || err != nil || len(page.Messages) != 3 {
		t.Fatalf("history: %d %v %s", status, err, answer)
	}
	came := page.Messages[1]
	if came.Direction != "out" || came.Content != "as it came" || len(came.Files) != 1 || came.Files[0].Size != 8 {
		t.Fatalf("the agent's file: %+v", came)
	}
	if status, content := c.request(t.Context(), "GET", came.Files[0].URL, "", nil); status != 200 || content != "one, two" {
		t.Errorf("download: %d %q", status, content)
	}
}

// dashd is killed around the commit of a row with files. The page sends it again.
func TestWebFiles_DashdKilledAtCommit_StoredOnce(t *testing.T) {
	for _, point := range []fp.Point{fp.Received, fp.PutMessage.Before(), fp.PutMessage.After()} {
		t.Run(string(point), func(t *testing.T) {
			c := startDashd(t, "")
			c.Kill(dashd)
			c.StartDaemon(dashd, "FAILPOINT="+string(point))
			c.WaitReady(dashd)
			p := c.Instance.Process(dashd)
			if row := c.upload("look", "c1", "a.txt", "one", "b.txt", "two"); row != 0 {
				t.Fatalf("it was answered with row %d", row)
			}
			c.Until("dashd to end", func() bool { return !p.Running() })
			c.Restart(dashd)
			want := []string{"one", "two"}
			if point != fp.PutMessage.After() {
				want = nil
			}
			c.wantFiles(want...)
			row := c.upload("look", "c1", "a.txt", "one", "b.txt", "two")
			if again := c.upload("look", "c1", "a.txt", "one", "b.txt", "two"); again != row {
				t.Errorf("sent again row %d is row %d", row, again)
			}
			c.wantFiles("one", "two")
			c.Answer(row)
		})
	}
}

// dashd is killed at any moment of uploads; each is sent again until it is answered.
func TestWebFiles_DashdKilledAnywhere_StoredOnce(t *testing.T) {
	need.Verify(t)
	c := startDashd(t, "")
	var want []string
	for n := range 12 {
		files := []string{strings.Repeat(fmt.Sprint("first ", n), 20_000), fmt.Sprint("second ", n)}
		want = append(want, files...)
		body, kind := form(fmt.Sprint("silent ", n), fmt.Sprint("c", n), "a.txt", files[0], "b.txt", files[1])
		ended := make(chan struct{})
		slow := &slowReader{Reader: bytes.NewReader(body), pause: time.Duration(rand.IntN(8)) * time.Millisecond}
		go func() {
			defer close(ended)
			c.request(t.Context(), "POST", "/chat/main/messages", kind, slow)
		}()
		<-time.After(time.Duration(rand.IntN(60)) * time.Millisecond)
		c.Kill(dashd)
		<-ended
		c.Restart(dashd)
		c.upload(fmt.Sprint("silent ", n), fmt.Sprint("c", n), "a.txt", files[0], "b.txt", files[1])
	}
	if rows := c.Value(`SELECT count(*) FROM messages WHERE direction = 'in'`); rows != "12" {
		t.Errorf("%s rows", rows)
	}
	c.wantFiles(want...)
}

// slowReader pauses between reads.
type slowReader struct {
	io.Reader
	pause time.Duration
}

func (s *slowReader) Read(p []byte) (int, error) {
	<-time.After(s.pause)
	return s.Reader.Read(p[:min(len(p), 16<<10)])
}
