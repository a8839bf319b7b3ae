package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	if err := run(&in, &out); err != nil {
		t.Fatal(err)
	}
	frames := agentproto.NewScanner(&out, io.Discard)
	for _, want := range []string{"engage Bearer t\nreact error Bearer t", "hello"} {
		f, err := frames.Next()
		if err != nil || f.Result != want {
			t.Errorf("%q, %v, want %q", f.Result, err, want)
		}
	}
}
