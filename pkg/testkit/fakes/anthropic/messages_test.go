package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/fakes/anthropic"
)

func TestMessages_Say_RepliesWithText(t *testing.T) {
	r := start(t)
	a := r.say("say hello")
	want := `{"id":"msg_fake00000001","type":"message","role":"assistant","model":"claude-fake-1",` +
		`"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,` +
		`"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}}` + "\n"
	if diff := cmp.Diff(want, a.Body); diff != "" || a.Status != 200 {
		t.Errorf("%d (-want +got):\n%s", a.Status, diff)
	}
	if id, kind := a.Header.Get("request-id"), a.Header.Get("content-type"); id != "req_fake00000001" || kind != "application/json" {
		t.Errorf("%q, %q", id, kind)
	}
	c := r.Calls()[0]
	if c.Method != anthropic.MethodMessages || c.Command != "say hello" || !c.Accepted || c.Status != 200 || c.Open || c.Broken ||
		c.Request.Model != "claude-fake-1" || c.Header.Get("x-api-key") != r.Key() {
		t.Errorf("recorded %+v", c)
	}
}

func TestMessages_Stream_SendsDeltasInOrder(t *testing.T) {
	r := start(t)
	text := strings.Repeat("0123456789é", 20)
	a := r.stream("say " + text)
	if kind := a.Header.Get("content-type"); kind != "text/event-stream; charset=utf-8" || a.Status != 200 || a.Broken {
		t.Errorf("%d %q", a.Status, kind)
	}
	events := a.events(t)
	if got, want := names(events), "message_start ping content_block_start"+strings.Repeat(" content_block_delta", 4)+
		" content_block_stop message_delta message_stop"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	var got string
	for _, e := range events {
		if delta, ok := e.Data["delta"].(map[string]any); ok && delta["type"] == "text_delta" {
			got += delta["text"].(string)
		}
	}
	if got != text {
		t.Errorf("the deltas are %q", got)
	}
	begun := events[0].Data["message"].(map[string]any)
	if len(begun["content"].([]any)) != 0 || begun["stop_reason"] != nil || begun["role"] != "assistant" {
		t.Errorf("began with %v", begun)
	}
	delta := events[len(events)-2].Data
	if delta["delta"].(map[string]any)["stop_reason"] != "end_turn" || delta["usage"].(map[string]any)["output_tokens"] == 0.0 {
		t.Errorf("ended with %v", delta)
	}
}

func TestMessages_Tool_StopsForToolUse(t *testing.T) {
	r := start(t)
	var m struct {
		Content    []anthropic.Block
		StopReason string `json:"stop_reason"`
	}
	a := r.say("tool Bash echo hi")
	if err := json.Unmarshal([]byte(a.Body), &m); err != nil || len(m.Content) != 1 || m.StopReason != "tool_use" {
		t.Fatalf("%v, %s", err, a.Body)
	}
	use := m.Content[0]
	if use.Type != "tool_use" || use.Name != "Bash" || use.ID != "toolu_fake0000000100" ||
		string(use.Input) != `{"command":"echo hi","description":"a command"}` {
		t.Errorf("got %+v, input %s", use, use.Input)
	}

	var input string
	for _, e := range r.stream(`tool Read {"path":"a"}`).events(t) {
		if block, ok := e.Data["content_block"].(map[string]any); ok && len(block["input"].(map[string]any)) != 0 {
			t.Errorf("a stream's block began with %v", block)
		}
		if delta, ok := e.Data["delta"].(map[string]any); ok && delta["type"] == "input_json_delta" {
			input += delta["partial_json"].(string)
		}
	}
	if input != `{"path":"a"}` {
		t.Errorf("streamed %s", input)
	}

	result := func(content string) string {
		return `{"model":"claude-fake-1","max_tokens":9,"messages":[{"role":"user","content":"tool Bash x"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},{"role":"user","content":[` + content + `]}]}`
	}
	for content, want := range map[string]string{
		`{"type":"tool_result","tool_use_id":"t1","content":"hi"}`:                                                     "The tool said: hi",
		`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"no"}],"is_error":true}`:            "The tool failed: no",
		`{"type":"tool_result","tool_use_id":"t1"},{"type":"text","text":"<system-reminder>x\ny</system-reminder>"}`:   "The tool said: ",
		`{"type":"tool_result","tool_use_id":"t1","content":"hi"},{"type":"text","text":"Interrupted."}`:               "You said: Interrupted.",
		`{"type":"tool_result","tool_use_id":"t1","content":"hi"},{"type":"text","text":"<m>say &lt;b&gt;\n</m>\n\n"}`: "<b>",
	} {
		if got := r.post("/v1/messages", result(content)).text(t); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}

func TestFollowCommand_LastText_DecidesReply(t *testing.T) {
	r := start(t)
	tests := []struct {
		texts []string
		want  string
	}{
		{[]string{"hello"}, "You said: hello"},
		{[]string{"SAY  a  b "}, "a  b"},
		{[]string{"first line\nsay second"}, "second"},
		{[]string{`<messages><message id="1">say no</message><message name="a">say &lt;yes&gt;</message></messages>`}, "<yes>"},
		{[]string{"say a", "a", "recall"}, "Before: say a"},
		{[]string{"say a", "a", "say b", "b", "recall"}, "Before: say a\nsay b"},
		{[]string{"slow 0.01 say late"}, "late"},
		{[]string{"slow 0s say late"}, "late"},
		{[]string{"slow down"}, "You said: slow down"},
		{[]string{"slow -1 x"}, "You said: slow -1 x"},
		{[]string{"slow NaN x"}, "You said: slow NaN x"},
		{[]string{"error 200"}, "You said: error 200"},
		{[]string{"error"}, "You said: error"},
		{[]string{"tool"}, "You said: tool"},
		{[]string{"<only markup/>"}, "You said nothing."},
	}
	for _, tt := range tests {
		if got := r.post("/v1/messages", conversation(tt.texts...)).text(t); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.texts, got, tt.want)
		}
	}
	if a := r.say("refuse"); !strings.Contains(a.Body, `"content":[],"stop_reason":"refusal"`) {
		t.Errorf("refused with %s", a.Body)
	}
	if a := r.say("error 529"); a.Status != 529 || !strings.Contains(a.Body, `"type":"overloaded_error","message":"Overloaded"`) &&
		!strings.Contains(a.Body, `"message":"Overloaded","type":"overloaded_error"`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := r.say("error 400 prompt is too long"); a.Status != 400 || !strings.Contains(a.Body, `"prompt is too long"`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func TestSetModel_Reply_IsThatOfFunction(t *testing.T) {
	r := start(t)
	r.SetModel(func(in anthropic.Request) anthropic.Reply {
		return anthropic.Reply{Text: fmt.Sprintf("%s %v", in.System.Text(), in.Tools), Tools: []anthropic.ToolUse{{Name: "A", Input: struct{}{}}, {Name: "B", Input: map[string]int{"n": 1}}}}
	})
	body := strings.Replace(conversation("x"), "{", `{"system":[{"type":"text","text":"be good"}],"tools":[{"name":"A","input_schema":{}}],`, 1)
	a := r.post("/v1/messages", body)
	for _, want := range []string{`"be good [{A}]"`, `"name":"A","input":{}`, `"name":"B","input":{"n":1}`, `"stop_reason":"tool_use"`} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("no %s in %s", want, a.Body)
		}
	}
	r.SetModel(nil)
	if got := r.say("say x").text(t); got != "x" {
		t.Errorf("got %q", got)
	}
}

func TestUnknownRoute_404(t *testing.T) {
	r := start(t)
	if a := r.request(r.ctx, http.MethodGet, "/v1/messages", ""); a.Status != 404 || !strings.Contains(a.Body, "not_found_error") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if c := r.Calls()[0]; c.Method != "GET /v1/messages" {
		t.Errorf("recorded %+v", c)
	}
}

func TestMessages_Refused(t *testing.T) {
	r := start(t)
	good := conversation("say x")
	with := func(fields string) string {
		return `{"model":"claude-x","max_tokens":1,"messages":[` + fields + `]}`
	}
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"A","input":{}}]}`
	tests := []struct {
		name    string
		body    string
		headers []string
		status  int
		kind    string
		message string
	}{
		{"no key", good, []string{"x-api-key", ""}, 401, "authentication_error", "x-api-key header is required"},
		{"wrong key", good, []string{"x-api-key", "sk-ant-wrong"}, 401, "authentication_error", "invalid x-api-key"},
		{"wrong bearer", good, []string{"x-api-key", "", "authorization", "Bearer no"}, 401, "authentication_error", "Invalid bearer token"},
		{"no version", good, []string{"anthropic-version", ""}, 400, "invalid_request_error", "anthropic-version: header is required"},
		{"no JSON", "{", nil, 400, "invalid_request_error", "not valid JSON"},
		{"a list", "[]", nil, 400, "invalid_request_error", "not valid JSON"},
		{"no model", `{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, nil, 400, "invalid_request_error", "model: Field required"},
		{"unknown model", strings.Replace(good, "claude-fake-1", "gpt-1", 1), nil, 404, "not_found_error", "model: gpt-1"},
		{"no max_tokens", `{"model":"claude-x","messages":[{"role":"user","content":"x"}]}`, nil, 400, "invalid_request_error", "max_tokens: Field required"},
		{"no messages", with(``), nil, 400, "invalid_request_error", "at least one message"},
		{"odd role", with(`{"role":"tool","content":"x"}`), nil, 400, "invalid_request_error", "messages.0.role"},
		{"system in the middle", with(`{"role":"user","content":"x"},{"role":"system","content":"x"}`), nil, 400, "invalid_request_error", "messages.1.role"},
		{"empty text", with(`{"role":"user","content":""}`), nil, 400, "invalid_request_error", "must be non-empty"},
		{"no tool result", with(`{"role":"user","content":"x"},` + use + `,{"role":"user","content":"x"}`), nil, 400, "invalid_request_error",
			"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1"},
		{"result of nothing", with(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2"}]}`), nil, 400, "invalid_request_error", "unexpected `tool_use_id`"},
		{"too large", `"` + strings.Repeat("x", 32<<20), nil, 413, "request_too_large", "exceeds the maximum size"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := r.post("/v1/messages", tt.body, tt.headers...)
			var body struct {
				Type  string
				Error struct{ Type, Message string }
				ID    string `json:"request_id"`
			}
			if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
				t.Fatalf("%v: %s", err, a.Body)
			}
			if a.Status != tt.status || body.Type != "error" || body.Error.Type != tt.kind || !strings.Contains(body.Error.Message, tt.message) ||
				body.ID != a.Header.Get("request-id") {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if c := r.Calls()[i]; c.Accepted || c.Status != tt.status {
				t.Errorf("recorded %+v", c)
			}
		})
	}
	if a := r.post("/v1/messages", good, "x-api-key", "", "authorization", "Bearer "+r.Key()); a.Status != 200 {
		t.Errorf("bearer: %d %s", a.Status, a.Body)
	}
	system := with(`{"role":"user","content":"say x"},{"role":"system","content":"be good"}`)
	if a := r.post("/v1/messages", system, "anthropic-beta", "a,mid-conversation-system-1"); a.Status != 200 {
		t.Errorf("beta: %d %s", a.Status, a.Body)
	}
}

func TestStream_Slow_HasBegun(t *testing.T) {
	r := start(t)
	done := make(chan answer)
	go func() { done <- r.stream("slow 600 say late") }()
	c, err := r.Wait(r.ctx, func(c anthropic.Call) bool { return c.Command != "" && c.Status == 200 })
	if err != nil || !c.Open {
		t.Fatalf("%v, %+v", err, c)
	}
	r.SetReachable(false)
	a := <-done
	if !a.Broken || names(a.events(t)) != "message_start ping" {
		t.Errorf("got %+v", a)
	}
	if c := r.Calls()[0]; !c.Broken || c.Open || !c.Accepted {
		t.Errorf("recorded %+v", c)
	}
}

func TestStream_LongText(t *testing.T) {
	r := start(t)
	long := strings.Repeat("word ", 100_000)
	begun := time.Now()
	events := r.stream("say " + long).events(t)
	if len(events) > 520 {
		t.Errorf("%d events", len(events))
	}
	if took := time.Since(begun); took > timeout {
		t.Errorf("took %v", took)
	}
}
