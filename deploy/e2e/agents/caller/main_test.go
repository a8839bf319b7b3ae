package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
)

func TestRun_CallsToolsOfMessages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		failed := strings.Contains(string(body), `"name":"react"`)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}],"isError":%t}}`, r.Header.Get("Authorization"), failed)
	}))
	defer server.Close()
	mcp := &agentproto.MCP{URL: server.URL, Token: "t"}
	var in, out bytes.Buffer
	for _, input := range []agentproto.Input{
		agentproto.Start{TurnID: "1", MCP: mcp, Prompt: "<messages><message>call engage {&quot;topic&quot;:&quot;&quot;}\ncall react {}</message></messages>"},
		agentproto.Message{TurnID: "2", Prompt: "<messages><message>say hello</message></messages>"},
	} {
		line, err := agentproto.Encode(input)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(line)
	}
	if err := agentproto.Serve(t.Context(), &in, &out, caller()); err != nil {
		t.Fatal(err)
	}
	frames := agentproto.NewScanner(&out, io.Discard)
	for _, want := range []string{"engage Bearer t\nreact error Bearer t", "hello"} {
		f, err := frames.NextFrame()
		if err != nil || f.Result != want {
			t.Errorf("%q, %v, want %q", f.Result, err, want)
		}
	}
}

func TestAnswer_NamesInArguments_StandForIDsAndText(t *testing.T) {
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, string(body))
		fmt.Fprint(w, `{"result":{"content":[{"type":"text","text":"{\"message_id\":9,\"poll_id\":3}"}]}}`)
	}))
	defer server.Close()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	prompt := `<reply_chain><message id="1">call react {}</message></reply_chain><messages>` +
		`<message id="7" verb="message">wait go
call react {"message_id":$this}
call edit_message {"message_id":$message_id,"text":"$text $9 $other"}
call poll_close {"poll_id":$poll_id}<attachment path="a"/></message></messages>`
	got := answer(t.Context(), &agentproto.MCP{URL: server.URL}, map[string]string{}, prompt)
	if want := "react R\nedit_message R\npoll_close R"; strings.ReplaceAll(got, `{"message_id":9,"poll_id":3}`, "R") != want {
		t.Errorf("answer %q", got)
	}
	for i, want := range []string{`{"message_id":7}`, `\ncall poll_close {\"poll_id\":$poll_id} $9 $other"}`, `{"poll_id":3}`} {
		if i >= len(calls) || !strings.Contains(calls[i], want) {
			t.Errorf("call %d: %s, want %s", i, calls, want)
		}
	}
}
