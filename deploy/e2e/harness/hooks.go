package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/msg"
)

// Hook is a hook of a group, at a dashd of an instance.
type Hook struct {
	groupconfig.Hook
	Chat   string // where its deliveries are stored
	URL    string
	Secret string
}

// AddHook adds a hook to a group by the command, with further flags. Its name is ci.
func (f *Fixture) AddHook(folder string, kind groupconfig.HookKind, flags ...string) *Hook {
	f.T.Helper()
	add := []string{"hooks", "add", folder, "--kind", string(kind), "--name", "ci"}
	printed := f.Run(Routd, append(add, flags...)...)
	h := &Hook{Hook: groupconfig.Hook{Kind: kind}}
	for line := range strings.Lines(printed) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "id":
			h.Chat = msg.PlatformHook + ":" + strings.TrimSpace(value)
		case "url":
			h.URL = strings.TrimSpace(value)
		case "secret":
			h.Secret = strings.TrimSpace(value)
		}
	}
	return h
}

// Run runs a program in the instance's environment and returns its output.
func (f *Fixture) Run(program string, args ...string) string {
	f.T.Helper()
	out, err := f.Instance.Command(program, args...).CombinedOutput()
	if err != nil {
		f.T.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Receipt is the answer to a delivery. The status is 0 if there is none.
type Receipt struct {
	Status int
	ID     int64 // of the message
	State  string
}

// Deliver sends a delivery as the hook's sender does, on a connection of its own.
func (h *Hook) Deliver(event, id, body string) (r Receipt, err error) {
	req, err := http.NewRequest(http.MethodPost, h.URL, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header = hooks.Sign(h.Hook, h.Secret, event, id, []byte(body), time.Now())
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return r, err
	}
	err = json.NewDecoder(bytes.NewReader(answer)).Decode(&r)
	if r.Status = res.StatusCode; r.Status != http.StatusAccepted {
		err = errors.Join(err, fmt.Errorf("%s answers %d %s", h.URL, r.Status, answer))
	}
	return r, err
}

// Issue is the payload of GitHub's event issues, about an issue of octo-org/hello-world.
func Issue(number int, title, body string) string {
	person := map[string]any{"login": "octocat"}
	payload, _ := json.Marshal(map[string]any{ // strings and numbers cannot fail
		"action": "opened", "repository": map[string]any{"full_name": "octo-org/hello-world"}, "sender": person,
		"issue": map[string]any{"number": number, "title": title, "body": body, "user": person},
	})
	return string(payload)
}
