package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"unicode/utf8"
)

// FuzzReadLine reads any output of the CLI. Its answers to requests are lines that the CLI can parse,
// since it exits at others.
func FuzzReadLine(f *testing.F) {
	for _, seed := range []string{
		`{"type":"result","subtype":"success","is_error":true,"result":"hi","session_id":"s","user_message_uuids":["u"],"origin":{"kind":"task"}}`,
		`{"type":"control_request","request_id":"7","request":{"subtype":"can_use_tool","tool_name":"Ba\u0000sh"}}`,
		`{"type":"system","subtype":"init","mcp_servers":[{"name":"arizuko","status":"failed"}]}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1e300}}`,
		`{"type":7}`, `[]`, `null`, `{`, "\x00\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := readLine(data)
		if (l.invalid == nil) != json.Valid(data) && json.Unmarshal(data, &line{}) == nil {
			t.Fatalf("%q: %v", data, l.invalid)
		}
		_ = l.failed()
		sent, err := json.Marshal(answer(l, denial(l)))
		if err != nil || !json.Valid(sent) || !utf8.Valid(sent) {
			t.Fatalf("answer %q to %q: %v", sent, data, err)
		}
	})
}

// An image goes along as it does with the agent acp; a file that only claims to be one goes by its path.
func TestUserLine_Images_AreContent(t *testing.T) {
	t.Chdir(t.TempDir())
	picture, err := base64.StdEncoding.DecodeString("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
	if err == nil {
		err = errors.Join(os.WriteFile("a.gif", picture, 0o600), os.WriteFile("b.png", []byte("<html>"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &run{stderr: io.Discard}
	got, err := json.Marshal(r.userLine("u", `<attachment path="a.gif" mime="image/gif"/><attachment path="b.png" mime="image/png"/>`).Message.Content[1:])
	if want := `[{"type":"text","text":"\u003cimage path=\"a.gif\"/\u003e"},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` +
		base64.StdEncoding.EncodeToString(picture) + `"}}]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
