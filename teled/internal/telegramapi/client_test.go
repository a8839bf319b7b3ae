package telegramapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

const token = "12345:secret-of-the-bot"

// serve makes a client of an API that answers with a handler.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return NewClient(s.URL+"/", token, adapter.NewCallClient())
}

// answer is a handler with a fixed answer.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// abort breaks the connection.
func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func expectNoToken(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), token) || strings.Contains(fmt.Sprintf("%+v", err), "secret-of") {
		t.Errorf("the error is missing or contains the token: %v", err)
	}
}

func TestCall_SendsParamsAndDecodesResult(t *testing.T) {
	var path string
	var form map[string][]string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		form = r.PostForm
		answer(200, `{"ok":true,"result":{"message_id":7}}`)(w, r)
	})
	var sent struct {
		ID int64 `json:"message_id"`
	}
	err := c.Call(t.Context(), "sendMessage", Params{
		"chat_id": int64(-5), "text": "a & b", "entities": []int{1, 2}, "reply": map[string]any{"message_id": 3},
		"nothing": nil, "empty": "", "zero": int64(0), "no": false, "none": []int{}, "yes": true,
	}, &sent)
	if err != nil || sent.ID != 7 || path != "/bot"+token+"/sendMessage" {
		t.Errorf("%v, message %d of %s", err, sent.ID, path)
	}
	want := map[string][]string{"chat_id": {"-5"}, "text": {"a & b"}, "entities": {"[1,2]"}, "reply": {`{"message_id":3}`}, "yes": {"true"}}
	if fmt.Sprint(form) != fmt.Sprint(want) {
		t.Errorf("sent %v, want %v", form, want)
	}
}

func TestCall_Refused_ReturnsError(t *testing.T) {
	for body, want := range map[string]Error{
		`{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`:                                                         {Code: 400, Description: "Bad Request: chat not found"},
		`{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":3}}`:                                    {Code: 429, Description: "Too Many Requests", RetryAfter: 3 * time.Second},
		`{"ok":false,"error_code":400,"description":"group chat was upgraded to a supergroup","parameters":{"migrate_to_chat_id":-100123}}`: {Code: 400, Description: "group chat was upgraded to a supergroup", MigrateTo: -100123},
	} {
		for what, files := range map[string][]Upload{"call": nil, "upload": {{Field: "photo", Name: "x", Data: strings.NewReader("x")}}} {
			err := serve(t, answer(want.Code, body)).Call(t.Context(), "sendPhoto", nil, nil, files...)
			var refused *Error
			want.Method = "sendPhoto"
			if !errors.As(err, &refused) || *refused != want || !strings.Contains(err.Error(), "sendPhoto") {
				t.Errorf("%s: %v, want %+v", what, err, want)
			}
			if errors.Is(err, adapter.ErrUnsent) {
				t.Errorf("%s: %v counts as unsent", what, err)
			}
			expectNoToken(t, err)
		}
	}
}

// Nothing says whether the API has carried out these calls.
func TestCall_NoValidAnswer_IsNeitherRefusedNorUnsent(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"server error":   answer(502, `<html>bad gateway</html>`),
		"refused as 500": answer(500, `{"ok":false,"error_code":500,"description":"Internal Server Error"}`),
		"aborted":        abort,
		"no JSON":        answer(200, `<html>`),
		"other JSON":     answer(200, `{}`),
		"other result":   answer(200, `{"ok":true,"result":"seven"}`),
		"incomplete":     answer(200, `{"ok":true,"result":{"message_id":`),
	} {
		var sent struct {
			ID int64 `json:"message_id"`
		}
		err := serve(t, h).Call(t.Context(), "sendMessage", Params{"text": "hello"}, &sent)
		if errors.As(err, new(*Error)) || errors.Is(err, adapter.ErrUnsent) {
			t.Errorf("%s: %v", name, err)
		}
		expectNoToken(t, err)
	}
}

// What a proxy or a firewall answers, in whatever form, says nothing of the API, its token and the call.
func TestCall_AnswerOfAnotherServer_IsForeign(t *testing.T) {
	for code, body := range map[int]string{
		401: `{"message":"Unauthorized"}`, 403: "<html>", 404: "404 page not found", 407: "", 429: "error code: 1015",
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
		err := c.Call(t.Context(), "getMe", nil, nil)
		var refused *Error
		if !errors.As(err, &refused) || *refused != (Error{Code: code, RetryAfter: 7 * time.Second, Foreign: true}) || TokenRefused(err) {
			t.Errorf("%d: %v", code, err)
		}
		f := c.Failure(t.Context(), err)
		if want := map[int]msg.ErrorClass{429: msg.Rate}[code]; f.Class != cmp.Or(want, msg.Transient) || f.Account != (code == 429) {
			t.Errorf("%d: %+v", code, f)
		}
		expectNoToken(t, err)
	}
}

func TestCall_NotConnected_IsUnsent(t *testing.T) {
	c := NewClient("http://127.0.0.1:1", token, adapter.NewCallClient())
	for what, err := range map[string]error{
		"call":     c.Call(t.Context(), "getMe", nil, nil),
		"upload":   c.Call(t.Context(), "sendPhoto", nil, nil, Upload{Field: "photo", Name: "x", Data: strings.NewReader("x")}),
		"download": c.Download(t.Context(), "file", io.Discard),
	} {
		if !errors.Is(err, adapter.ErrUnsent) {
			t.Errorf("%s: %v", what, err)
		}
		expectNoToken(t, err)
	}
	if err := c.Call(t.Context(), "sendMessage", Params{"entities": make(chan int)}, nil); !errors.Is(err, adapter.ErrUnsent) {
		t.Errorf("params that cannot be encoded: %v", err)
	}
}

func TestCall_ContextEnds_Returns(t *testing.T) {
	called := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(called)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	err := c.Call(ctx, "getUpdates", Params{"timeout": int64(50)}, nil)
	if !errors.Is(err, context.Canceled) || errors.Is(err, adapter.ErrUnsent) {
		t.Errorf("%v", err)
	}
	expectNoToken(t, err)
}

func TestCall_Upload_IsMultipart(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
			return
		}
		f, header, err := r.FormFile("document")
		if err != nil {
			t.Error(err)
			return
		}
		data, _ := io.ReadAll(f)
		if header.Filename != "cat.txt" || string(data) != "meow" || r.FormValue("caption") != "a cat" || r.FormValue("chat_id") != "7" {
			t.Errorf("file %q with %q, form %v", header.Filename, data, r.Form)
		}
		answer(200, `{"ok":true,"result":{"message_id":7}}`)(w, r)
	})
	err := c.Call(t.Context(), "sendDocument", Params{"chat_id": int64(7), "caption": "a cat"}, nil,
		Upload{Field: "document", Name: "cat.txt", Data: strings.NewReader("meow")})
	if err != nil {
		t.Error(err)
	}
}

// fileServer answers getFile with a path, and that path with a handler.
func fileServer(t *testing.T, path string, file http.HandlerFunc) *Client {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/bot"+token+"/getFile" && r.FormValue("file_id") == "f1":
			_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"file_id":"f1","file_path":%q}}`, path)
		case r.URL.Path == "/file/bot"+token+"/"+path:
			file(w, r)
		default:
			answer(400, `{"ok":false,"error_code":400,"description":"Bad Request: invalid file_id"}`)(w, r)
		}
	})
}

func TestDownload_WritesTheFile(t *testing.T) {
	var b strings.Builder
	if err := fileServer(t, "photos/file_1.jpg", answer(200, "meow")).Download(t.Context(), "f1", &b); err != nil || b.String() != "meow" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// A server of one's own that is run with --local gives the path on its disk.
func TestDownload_LocalServer_TakesThePathInTheBotsFolder(t *testing.T) {
	var b strings.Builder
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bot" + token + "/getFile":
			_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"file_path":"/var/lib/telegram-bot-api/%s/documents/file_1.pdf"}}`, token)
		case "/file/bot" + token + "/documents/file_1.pdf":
			_, _ = io.WriteString(w, "meow")
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	})
	if err := c.Download(t.Context(), "f1", &b); err != nil || b.String() != "meow" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// fullWriter takes nothing.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestDownload_Fails(t *testing.T) {
	for name, tt := range map[string]struct {
		id, path string
		file     http.HandlerFunc
		to       io.Writer
		want     string
	}{
		"unknown id":      {"f2", "x", answer(200, ""), io.Discard, "invalid file_id"},
		"file is gone":    {"f1", "x", answer(404, `{"ok":false}`), io.Discard, "the file server answered 404"},
		"invalid path":    {"f1", "%zz", answer(200, ""), io.Discard, "invalid file path"},
		"connection ends": {"f1", "x", abort, io.Discard, "EOF"},
		"file too large":  {"f1", "x", answer(200, "meow"), fullWriter{}, io.ErrShortWrite.Error()},
		"incomplete": {"f1", "x", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "half")
		}, io.Discard, "EOF"},
		"redirect elsewhere": {"f1", "x", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, io.Discard, "the file server answered 302"},
	} {
		err := fileServer(t, tt.path, tt.file).Download(t.Context(), tt.id, tt.to)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		expectNoToken(t, err)
	}
}

func TestDownload_ContextEnds_Returns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := fileServer(t, "x", func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}).Download(ctx, "f1", io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	expectNoToken(t, err)
}

func TestChatID_OnlyOfItsPlatform(t *testing.T) {
	for _, platform := range []string{"telegram", "telegram+work"} {
		for _, want := range []int64{7, -100123} {
			if got, topic, err := ChatID(platform, JID(platform, want)); got != want || topic != 0 || err != nil {
				t.Errorf("%s is %d and %d, %v", JID(platform, want), got, topic, err)
			}
			if got, topic, err := ChatID(platform, TopicJID(platform, want, 5)); got != want || topic != 5 || err != nil {
				t.Errorf("%s is %d and %d, %v", TopicJID(platform, want, 5), got, topic, err)
			}
		}
	}
	for _, jid := range []string{"", "telegram:", "telegram:0", "telegram:seven", "discord:7", "telegram:7/8", "telegram+work:7",
		"telegram:-5.", "telegram:-5.x", "telegram:-5.0", "telegram:.7", "telegram:-5.7.8"} {
		if got, topic, err := ChatID("telegram", jid); err == nil || got != 0 || topic != 0 {
			t.Errorf("%q is %d and %d", jid, got, topic)
		}
	}
}
