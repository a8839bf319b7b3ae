package discordapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter"
)

const token = "secret-token"

// serve is a client of an API that answers with a handler.
func serve(t *testing.T, h http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return NewClient(s.URL+"/", token, adapter.NewCallClient()), s
}

func TestCall(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/api/v9/channels/5/messages" || r.Header.Get("Authorization") != "Bot "+token ||
			r.Header.Get("Content-Type") != "application/json" || string(body) != `{"content":"hi"}` {
			t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, body)
		}
		w.Write([]byte(`{"id":"7"}`))
	})
	var made Message
	if err := c.Call(t.Context(), http.MethodPost, "channels/5/messages", Params{"content": "hi"}, &made); err != nil || made.ID != "7" {
		t.Errorf("%+v, %v", made, err)
	}
}

func TestUpload(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil || r.ContentLength <= 0 {
			t.Error(r.ContentLength, err)
		}
		f, header, err := r.FormFile("files[0]")
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(f)
		if r.FormValue("payload_json") != `{"content":"hi"}` || string(data) != "eggs" || header.Filename != `no"tes.txt` {
			t.Errorf("%v with %q of %q", r.Form, data, header.Filename)
		}
	})
	err := c.Call(t.Context(), http.MethodPost, "channels/5/messages", Params{"content": "hi"}, nil, Upload{Name: `no"tes.txt`, Data: strings.NewReader("eggs")})
	if err != nil {
		t.Error(err)
	}
	broken := Upload{Name: "a", Data: io.MultiReader(strings.NewReader("x"), brokenReader{})}
	if err := c.Call(t.Context(), http.MethodPost, "channels/5/messages", Params{}, nil, broken); !errors.Is(err, adapter.ErrUnsent) {
		t.Errorf("half a file: %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header string
		body   string
		want   Error
	}{
		"with a code":         {403, "", `{"message":"Missing Access","code":50001}`, Error{403, 50001, "Missing Access", 0, false, false, false}},
		"with what is wrong":  {400, "", `{"message":"Invalid Form Body","code":50035,"errors":{"content":1}}`, Error{400, 50035, `Invalid Form Body {"content":1}`, 0, false, false, false}},
		"without words":       {400, "", `{}`, Error{400, 0, "Bad Request", 0, false, false, false}},
		"of the proxy":        {502, "", `<html>`, Error{502, 0, "Bad Gateway", 0, true, false, false}},
		"nothing":             {401, "", ``, Error{401, 0, "Unauthorized", 0, true, false, false}},
		"too often":           {429, "", `{"message":"Slow down","retry_after":1.5,"global":false}`, Error{429, 0, "Slow down", 1500 * time.Millisecond, false, true, false}},
		"too often, in a row": {429, "7", `<html>`, Error{429, 0, "Too Many Requests", 7 * time.Second, true, true, false}},
		"absurdly often":      {429, "NaN", `{"message":"x","retry_after":1e300}`, Error{429, 0, "x", time.Hour, false, true, false}},
		"for no time at all":  {429, "-5", `{"message":"x","retry_after":-1}`, Error{429, 0, "x", 0, false, true, false}},
		"of one message":      {429, "", `{"message":"Too old","code":30046}`, Error{429, 30046, "Too old", adapter.ForeignWait, false, false, false}},
		"a redirect":          {304, "", ``, Error{304, 0, "Not Modified", 0, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", tt.header)
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			err := c.Call(t.Context(), http.MethodGet, "users/@me", nil, nil)
			if refused := new(Error); !errors.As(err, &refused) || *refused != tt.want {
				t.Errorf("%#v", err)
			}
		})
	}
}

func TestBrokenAnswers(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "half") {
			w.Header().Set("Content-Length", "100")
		}
		io.WriteString(w, `{"id":`)
	})
	for _, path := range []string{"half", "garbage"} {
		var out Message
		err := c.Call(t.Context(), http.MethodGet, path, nil, &out)
		if refused := new(Error); err == nil || errors.As(err, &refused) || errors.Is(err, adapter.ErrUnsent) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestUnsent tells what never arrived from what may have, and no error contains the token.
func TestUnsent(t *testing.T) {
	c, s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err := c.Call(t.Context(), http.MethodPost, "channels/5/messages", Params{}, nil); err == nil || errors.Is(err, adapter.ErrUnsent) {
		t.Errorf("an answer that was cut off: %v", err)
	}
	s.Close()
	if err := c.Call(t.Context(), http.MethodPost, "channels/5/messages", Params{}, nil); !errors.Is(err, adapter.ErrUnsent) {
		t.Errorf("not listening: %v", err)
	}
	if err := c.Call(t.Context(), http.MethodPost, "channels/5/messages", Params{"x": func() {}}, nil); !errors.Is(err, adapter.ErrUnsent) {
		t.Errorf("no JSON: %v", err)
	}
	err := c.Answer(t.Context(), &Interaction{ID: "5", Token: "its-token"}, "x")
	if err == nil || strings.Contains(err.Error(), "its-token") || strings.Contains(err.Error(), token) {
		t.Errorf("%v", err)
	}
}

func TestDownload(t *testing.T) {
	c, s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the file server received the token")
		}
		switch r.URL.Path {
		case "/attachments/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/attachments/elsewhere":
			http.Redirect(w, r, "/attachments/cat.jpg", http.StatusFound)
		default:
			io.WriteString(w, "meow")
		}
	})
	var b bytes.Buffer
	if err := c.Download(t.Context(), s.URL+"/attachments/cat.jpg?ex=1", &b); err != nil || b.String() != "meow" {
		t.Errorf("%q, %v", b.String(), err)
	}
	for _, address := range []string{
		s.URL + "/attachments/gone", s.URL + "/attachments/elsewhere", "", "::", "file:///etc/passwd", "http://cdn.discordapp.com/a", "https://cdn.discordapp.com.evil.example/a",
		"https://cdn.discordapp.com@evil.example/a", "https://evil.example/https://cdn.discordapp.com/", "http://127.0.0.1:1/a", "https://cdn.discordapp.com:8443/a",
		strings.Replace(s.URL, "http", "https", 1) + "/attachments/cat.jpg",
	} {
		b.Reset()
		if err := c.Download(t.Context(), address, &b); err == nil || b.Len() > 0 {
			t.Errorf("%q gives %q, %v", address, b.String(), err)
		}
	}
	for address, kept := range map[string]bool{"https://cdn.discordapp.com/a": true, "https://media.discordapp.net/a": true, "https://discord.com/a": false} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is asked for
		if err := c.Download(ctx, address, &b); errors.Is(err, context.Canceled) != kept {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestSnowflakes(t *testing.T) {
	if ms := SnowflakeTime("175928847299117063"); ms != 1462015105796 { // the documentation's example
		t.Errorf("%d", ms)
	}
	if id := SnowflakeAt(1462015105796); id != "175928847298985984" || SnowflakeAt(5) != "0" {
		t.Errorf("%s", id)
	}
	for _, pair := range [][2]string{{"1", ""}, {"10", "9"}, {"175928847299117063", "99999999999999999"}} {
		if !Younger(pair[0], pair[1]) || Younger(pair[1], pair[0]) || Younger(pair[0], pair[0]) {
			t.Errorf("%q", pair)
		}
	}
	for id, want := range map[string]bool{"1": true, "": false, "0": false, "-1": false, "1.5": false, "18446744073709551616": false, "1:2": false} {
		if IsID(id) != want {
			t.Errorf("%q", id)
		}
	}
}
