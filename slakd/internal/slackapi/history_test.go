package slackapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter"
)

// A type of conversations that is refused, at once or on a later page, or an odd entry, hides no other conversation.
func TestConversations_RefusedType_HidesNoOther(t *testing.T) {
	answers := map[string]string{
		"im":                   `{"ok":false,"error":"missing_argument"}`,
		"mpim":                 `{"ok":true,"channels":[{"id":7},"odd",{"id":"G1"},{"id":"G2","is_im":"maybe"}]}`,
		"private_channel":      `{"ok":true,"channels":[{"id":"C1"}],"response_metadata":{"next_cursor":"more"}}`,
		"private_channel more": `{"ok":false,"error":"invalid_cursor"}`,
		"public_channel":       `{"ok":true,"channels":[{"id":"C2"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(answers[strings.TrimSpace(r.FormValue("types")+" "+r.FormValue("cursor"))]))
	}))
	defer server.Close()
	c := NewClient(server.URL, "xoxb-1", "", adapter.NewCallClient())
	defer c.Close()
	all, refused, err := c.Conversations(t.Context())
	var got []string
	for _, found := range all {
		got = append(got, found.ID)
	}
	if diff := cmp.Diff([]string{"G1", "G2", "C1", "C2"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if refused == nil || !strings.Contains(refused.Error(), "private_channel: invalid_cursor") {
		t.Errorf("refused: %v", refused)
	}
	answers["mpim"] = `{"ok":false,"error":"internal_error"}`
	if _, _, err := c.Conversations(t.Context()); Code(err) != "internal_error" {
		t.Errorf("an error that may pass: %v", err)
	}
}
