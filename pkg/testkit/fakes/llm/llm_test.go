package llm

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func post(t *testing.T, base, path, key, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

func TestServer_EachAPI_FollowsCommands(t *testing.T) {
	s := New()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/responses", `{"model":"m","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"say hello"}]}]}`, `"delta":"hello"`},
		{"/v1/responses", `{"stream":true,"tools":[{"type":"namespace","name":"ns","tools":[{"name":"repeat"}]}],"input":[{"role":"user","content":"tool repeat {\"a\":1}"}]}`, `"name":"repeat","namespace":"ns"`},
		{"/v1/responses", `{"stream":true,"input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c","output":"fine"}]}`, "The tool said: "},
		{"/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"say hello"}]}`, `"content":"hello"`},
		{"/v1/chat/completions", `{"stream":true,"tools":[{"function":{"name":"my_repeat"}}],"messages":[{"role":"user","content":"tool repeat {}"}]}`, `"name":"my_repeat"`},
		{"/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"fine"}]}`, "The tool said: "},
		{"/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"say hello"}]}]}`, `"text":"hello"`},
		{"/v1beta/models/m:streamGenerateContent", `{"tools":[{"functionDeclarations":[{"name":"repeat"}]}],"contents":[{"role":"user","parts":[{"text":"tool repeat {}"}]}]}`, `"functionCall"`},
		{"/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"user","parts":[{"functionResponse":{"name":"r","response":{"o":"fine"}}}]}]}`, "The tool said: "},
		{"/v1beta/models/small:generateContent", `{"generationConfig":{"responseJsonSchema":{"type":"object","properties":{"choice":{"type":"STRING","enum":["flash","pro"]},"score":{"type":"integer"}}}},"contents":[{"role":"user","parts":[{"text":"which"}]}]}`, `"text":"{\"choice\":\"flash\",\"score\":1}"`},
	} {
		if status, answer := post(t, base, tt.path, Key, tt.body); status != http.StatusOK || !strings.Contains(answer, tt.want) {
			t.Errorf("%s %s: %d %s, want %s", tt.path, tt.body, status, answer, tt.want)
		}
		if status, _ := post(t, base, tt.path, "wrong", tt.body); status != http.StatusUnauthorized {
			t.Errorf("%s: %d with a wrong key", tt.path, status)
		}
		if status, _ := post(t, base, tt.path, Key, "no JSON"); status != http.StatusBadRequest {
			t.Errorf("%s: %d without JSON", tt.path, status)
		}
	}
	if status, answer := post(t, base, "/v1/responses", Key, `{"stream":true,"input":[{"role":"user","content":"error 529 busy"}]}`); status != 529 || !strings.Contains(answer, "busy") {
		t.Errorf("%d %s", status, answer)
	}
	if status, _ := post(t, base, "/v1/other", Key, "{}"); status != http.StatusNotFound {
		t.Errorf("%d for an unknown method", status)
	}
	if got := s.Calls(); len(got) != 11 || got[0].Request.Model != "m" || got[0].Request.Commands()[0] != "say hello" || !strings.Contains(string(got[0].Body), "say hello") {
		t.Errorf("calls %+v", got)
	}
}
