package tools

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

// Every test of this file holds for each tool of the registry.
func eachTool(t *testing.T, test func(t *testing.T, tool Tool)) {
	t.Helper()
	for _, tool := range Registry() {
		t.Run(tool.Name, func(t *testing.T) {
			t.Parallel()
			test(t, tool)
		})
	}
}

// fixtureFor is a fixture whose run can call a tool with its example.
func fixtureFor(t *testing.T, tool Tool) *fixture {
	f := newFixture(t)
	if tool.Name == escalateName { // acme has no group above it
		f.own, f.turn, f.access = f.startRun("acme/eng", "telegram:-9", "hi")
	}
	return f
}

func TestTools_Example_WorksAndIsLogged(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		f := fixtureFor(t, tool)
		result := f.works(tool.Name, tool.example())
		if !json.Valid([]byte(result)) {
			t.Errorf("the result is not JSON: %s", result)
		}
		if log := f.log.String(); !strings.Contains(log, `msg="tool called" tool=`+tool.Name) || !strings.Contains(log, "state=ok") {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestTools_TokenOfNoLiveRun_IsUnauthorized(t *testing.T) {
	f := parallel(t)
	_, _, ended := f.startRun("acme/no/deep", "telegram:-8", "hi")
	ended.Close()
	own := f.access.Token()
	for name, token := range map[string]string{
		"none": "", "wrong": "wrong", "another length": own + "x", "changed": string(own[0]^1) + own[1:], "of an ended run": ended.Token(),
	} {
		for _, tool := range Registry() {
			if status := f.post(tool.Name, tool.example(), token); status != http.StatusUnauthorized {
				t.Errorf("token %s, %s: status %d", name, tool.Name, status)
			}
		}
	}
	if status := f.post("send_message", `{"text":"hi"}`, own); status != http.StatusOK {
		t.Errorf("its own token: status %d", status)
	}
}

// post calls a tool without a client's library, and returns the status.
func (f *fixture) post(tool, arguments, token string) int {
	f.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + f.fill(arguments) + `}}`
	status, _ := f.request(body, func(r *http.Request) {
		r.Header.Del("Authorization")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	})
	return status
}

// request sends a request of the run, as it is after change.
func (f *fixture) request(body string, change func(*http.Request)) (status int, answer string) {
	f.t.Helper()
	r := storetest.Must(http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.server.URL+Path, strings.NewReader(body)))(f.t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+f.access.Token())
	change(r)
	res := storetest.Must(http.DefaultTransport.RoundTrip(r))(f.t)
	defer res.Body.Close()
	text := storetest.Must(io.ReadAll(res.Body))(f.t)
	return res.StatusCode, string(text)
}

func TestTools_WhatIsOfAnotherGroup_IsRefused(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		if names := namesOthers(tool.input); len(names) > 0 && len(examples()[tool.Name].foreign) == 0 {
			t.Errorf("it takes %q, and has no foreign example", names)
		}
		f := fixtureFor(t, tool)
		for _, arguments := range examples()[tool.Name].foreign {
			f.refused(tool.Name, arguments, "reach")
		}
		if sent := f.outbound(); len(sent) > 0 {
			t.Errorf("%d messages were sent", len(sent))
		}
	})
}

// namesOthers are fields that could name something of another group.
func namesOthers(s *jsonschema.Schema) (names []string) {
	for name := range s.Properties {
		for _, part := range []string{"folder", "chat", "jid", "message", "group"} {
			if strings.Contains(strings.ToLower(name), part) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestTools_WrongUse_SaysWhatToDo: a refusal names the argument that is wrong and what it may be, and nothing is done.
func TestTools_WrongUse_SaysWhatToDo(t *testing.T) {
	f := parallel(t)
	before := f.written()
	for _, tt := range []struct {
		tool  string
		calls map[string]string // arguments → what the refusal has
	}{
		{"engage", map[string]string{
			`{"jid":"OWN_CHAT"}`:                         `the arguments must have "topic"`,
			`{"topic":""}`:                               `the arguments must have "jid"`,
			`{"jid":"x","topic":""}`:                     "jid must have at least 3 characters",
			`{"jid":"OWN_CHAT","topic":7}`:               "topic must be of type string",
			`{"jid":"OWN_CHAT","topic":"","thread":"x"}`: `the arguments must not have "thread"`,
			`{"jid":"OWN_CHAT","topic":"` + strings.Repeat("x", 500) + `"}`: "topic must have at most 200 characters",
			`{"jid":"nowhere","topic":""}`:                                  "out of reach",
			`{"jid":"OWN_CHAT","topic":"deploy"}`:                           `has no thread "deploy": give the place of <turn>, which is "" here`,
			`{"jid":"FOREIGN_CHAT","topic":""}`:                             "out of reach",
		}},
		{"disengage", map[string]string{
			`{"jid":"OWN_CHAT"}`:                  `the arguments must have "topic"`,
			`{"topic":""}`:                        `the arguments must have "jid"`,
			`{"jid":"nowhere","topic":""}`:        "out of reach",
			`{"jid":"OWN_CHAT","topic":"deploy"}`: `has no thread "deploy": give the place of <turn>, which is "" here`,
			`{"jid":"FOREIGN_CHAT","topic":""}`:   "out of reach",
		}},
		{"broadcast", map[string]string{`{"text":""}`: "text must not be empty"}},
		{"send_message", map[string]string{
			`{"text":"<think>only thoughts</think>"}`: "nothing is sent",
			`{"text":"x","topic":"78"}`:               "no thread",
			`{"text":"x","topic":"#not valid"}`:       "not valid",
		}},
		{"edit_message", map[string]string{`{"message_id":OWN_ANSWER,"text":"<think>hm</think>"}`: "text is empty"}},
		{"reset_session", map[string]string{`{}`: "groupFolder"}},
		{"search_messages", map[string]string{
			`{"text":"   "}`:                     "blank",
			`{"text":"needle","before":"12"}`:    "is not the next of an earlier result",
			`{"text":"needle","before":"12-"}`:   "is not the next of an earlier result",
			`{"text":"needle","before":"-"}`:     "is not the next of an earlier result",
			`{"text":"needle","before":"a-b"}`:   "is not the next of an earlier result",
			`{"text":"needle","before":"-1-2"}`:  "is not the next of an earlier result",
			`{"text":"needle","before":"1-2-3"}`: "is not the next of an earlier result",
		}},
		{"ask_user", map[string]string{
			`{"question":"?","options":["a"]}`:     "options",
			`{"question":"?","options":["a","a"]}`: "option 2 is the same as another one",
		}},
		{"poll_create", map[string]string{
			`{"question":"lunch?","options":["pizza"]}`:                               "options must have at least 2 entries",
			`{"question":"lunch?","options":["pizza",""]}`:                            "options[] must not be empty",
			`{"question":" ","options":["a","b"]}`:                                    "question: is empty",
			`{"question":"` + strings.Repeat("😀", 151) + `","options":["a","b"]}`:     "take 300",
			`{"question":"q","options":["a","a"]}`:                                    "same as another",
			`{"question":"q","options":["a"," "]}`:                                    "option 2 is empty",
			`{"question":"q","options":["a","` + strings.Repeat("x", 101) + `"]}`:     "take 100",
			`{"question":"q","options":["a","b"],"closes_at":"tomorrow"}`:             "is no time",
			`{"question":"q","options":["a","b"],"closes_at":"2001-01-01T00:00:00Z"}`: "in the past",
			`{"question":"q","options":["a","b"],"closes_at":"2025-11-15T00:00:00Z"}`: "a year",
		}},
		{"poll_close", map[string]string{`{"poll_id":4711}`: "poll_list"}},
		{"reminder_create", map[string]string{
			`{"kind":"text","body":"late","due_at":"2023-11-01T09:00:00Z"}`: "has passed: it is 2023-11-14",
			`{"kind":"text","body":"often","cron":"* * * * *"}`:             "every 10 minutes at most",
			`{"kind":"text","body":"when"}`:                                 "Give due_at",
		}},
		{"activate_context_object", map[string]string{
			`{"event":"poll_created","kind":"poll","source_message_id":OWN_MESSAGE}`:        "event",
			`{"event":"media_inspected","kind":"article","source_message_id":OWN_MESSAGE}`:  "use one of",
			`{"event":"followup_attached","kind":"poll","source_message_id":OWN_MESSAGE}`:   "list it with its own tool",
			`{"event":"url_discussed","kind":"song","source_message_id":OWN_MESSAGE}`:       "kind must be one of article link",
			`{"event":"url_discussed","kind":"link","url":"javascript:alert(1)"}`:           "begins with http",
			`{"event":"media_inspected","kind":"media.image","url":"https://example.org/"}`: "give the source_message_id",
		}},
		{"list_active_context_objects", map[string]string{
			`{"allowed_kinds":["song"]}`:      "allowed_kinds[] must be one of article link",
			`{"include_inactive_debug":true}`: "include_inactive_debug",
		}},
		{delegateName, map[string]string{
			`{"folder":"acme/nosuch","prompt":"hi"}`:                  "choose one of acme/eng",
			`{"folder":"acme","prompt":"hi"}`:                         "not a group below yours",
			`{"folder":"acme/eng","prompt":"<internal>x</internal>"}`: "prompt is empty",
		}},
		{injectName, map[string]string{
			`{"chat_jid":"acme","content":"go on"}`:                        "no address of a chat",
			`{"chat_jid":"OWN_CHAT","content":"go on","topic":"4711"}`:     "no thread",
			`{"chat_jid":"OWN_CHAT","content":"/stop"}`:                    "are for users",
			`{"chat_jid":"OWN_CHAT","content":"/new go on"}`:               "are for users",
			`{"chat_jid":"OWN_CHAT","content":"/approve ABCD-1234 main"}`:  "are for users",
			`{"chat_jid":"OWN_CHAT","content":"@eng"}`:                     "are for users",
			`{"chat_jid":"OWN_CHAT","content":"@eng do it"}`:               "are for users",
			`{"chat_jid":"OWN_CHAT","content":"@"}`:                        "are for users",
			`{"chat_jid":"OWN_CHAT","content":" @eng"}`:                    "are for users",
			"{\"chat_jid\":\"OWN_CHAT\",\"content\":\"\u2003@eng do it\"}": "are for users",
		}},
	} {
		for arguments, want := range tt.calls {
			text, isError := f.call(tt.tool, arguments)
			if !isError || !strings.Contains(text, want) || strings.Contains(text, "validating") {
				t.Errorf("%s %.80s: %v %q, want %q", tt.tool, arguments, isError, text, want)
			}
		}
	}
	if after := f.written(); after != before {
		t.Errorf("rows before: %s\nafter: %s", before, after)
	}
	f.shows("list_active_context_objects", `{}`, `"objects":[]`)
	f.shows("resolve_reference_target", `{}`, `"result":"not_found"`)
	f.routd.down = true
	for _, tool := range []string{"engage", "disengage"} {
		f.refused(tool, `{"jid":"OWN_CHAT","topic":""}`, "try again later")
	}
}

func TestTools_UnknownFieldOrNoOpenTurn_IsRefused(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		f := fixtureFor(t, tool)
		with := strings.TrimSuffix(tool.example(), "}") + `,"nosuch_field":1}`
		f.refused(tool.Name, strings.Replace(with, "{,", "{", 1), "nosuch_field")
		f.access.SetTurn(0)
		f.refused(tool.Name, tool.example(), "no message is being answered now")
		f.access.SetTurn(f.turn.ID)
		f.cancelTurn()
		f.refused(tool.Name, tool.example(), "was cancelled or has ended")
		if sent := f.outbound(); len(sent) > 0 {
			t.Errorf("%d messages were sent", len(sent))
		}
	})
}

func TestTools_Schemas_DescribeAndBoundEachField(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		if len(tool.Description) < 60 || tool.Title == "" {
			t.Errorf("title %q, description %q", tool.Title, tool.Description)
		}
		checkSchema(t, tool, "", tool.input, true)
		checkSchema(t, tool, "", tool.output, false)
		if !tool.Kind.ReadOnly && tool.Kind.Destructive && tool.Kind == Adds {
			t.Error("its kind contradicts itself")
		}
	})
}

// A tool takes whatever its schema allows, or refuses it in words: bounds are in characters, wherever a text ends up.
func TestTools_LargestTexts_AreNoErrorOfTheTool(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		all := map[string]any{}
		for field, s := range tool.input.Properties {
			value := largestText(field, s)
			if value == nil {
				continue
			}
			all[field] = value
			takesText(t, tool, map[string]any{field: value})
		}
		takesText(t, tool, all)
	})
}

// takesText calls a tool with its example, some fields of it replaced.
func takesText(t *testing.T, tool Tool, fields map[string]any) {
	t.Helper()
	f := fixtureFor(t, tool)
	var arguments map[string]any
	if err := json.Unmarshal([]byte(f.fill(tool.example())), &arguments); err != nil {
		t.Fatal(err)
	}
	maps.Copy(arguments, fields)
	body := storetest.Must(json.Marshal(arguments))(t)
	text, _ := f.call(tool.Name, string(body))
	if strings.Contains(text, "failed inside arizuko") || strings.Contains(text, "validating") {
		t.Errorf("%v: %.200s\n%.400s", slices.Collect(maps.Keys(fields)), text, f.log.String())
	}
}

// largestText is the longest text, in characters of four bytes, that a field takes, or a list of such ones; nil if it takes
// none.
func largestText(field string, s *jsonschema.Schema) any {
	switch {
	case s.Items != nil && s.Items.MaxLength != nil:
		items := make([]string, *s.MaxItems)
		for i := range items {
			items[i] = strings.Repeat("😀", *s.Items.MaxLength-1) + string(rune('😀'+i%50))
		}
		return items
	case s.MaxLength == nil:
		return nil
	}
	begins := map[string]string{"url": "https://e.org/", "jid": "telegram:", "chat_jid": "telegram:", "chat_id": "telegram:", "topic": "#"}[field]
	return begins + strings.Repeat("😀", *s.MaxLength-len(begins))
}

func checkSchema(t *testing.T, tool Tool, path string, s *jsonschema.Schema, bounded bool) {
	t.Helper()
	if s.Type == "" || len(s.Types) > 0 { // some clients drop a field whose type is a choice
		t.Errorf("%q is of type %q%q", path, s.Type, s.Types)
	}
	if s.Type == "object" && s.AdditionalProperties == nil {
		t.Errorf("%q takes unknown fields", path)
	}
	for name, field := range s.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		if field.Description == "" {
			t.Errorf("%s has no description", at)
		}
		if slices.Contains([]string{"config", "transcribe", "command"}, name) { // they name programs that gated runs
			t.Errorf("%s is the operators' alone", at)
		}
		if bounded {
			checkBounds(t, tool, at, field)
		}
		if field.Items != nil {
			checkSchema(t, tool, at+"[]", field.Items, bounded)
		}
		checkSchema(t, tool, at, field, bounded)
	}
}

// clamped are numbers without bounds: the tool takes the nearest one that it can use, or the id of a message.
var clamped = []string{"current_message_id", "reply_to_message_id", "source_message_id", "max_results", "limit"}

func checkBounds(t *testing.T, tool Tool, at string, s *jsonschema.Schema) {
	t.Helper()
	switch {
	case s.Type == "string" && s.MaxLength == nil && s.Enum == nil:
		t.Errorf("the text %s has no longest length", at)
	case s.Type == "array" && s.MaxItems == nil:
		t.Errorf("the list %s has no longest length", at)
	case (s.Type == "integer" || s.Type == "number") && (s.Minimum == nil || s.Maximum == nil) && !slices.Contains(clamped, at):
		t.Errorf("the number %s has no bounds", at)
	case s.Type == "array" && s.Items.Type == "string" && s.Items.MaxLength == nil && s.Items.Enum == nil:
		t.Errorf("texts of %s have no longest length", at)
	}
}

func TestServer_ToolsList_IsTheRegistry(t *testing.T) {
	f := parallel(t)
	session := storetest.Must(f.client(f.access.Token()))(t)
	list := storetest.Must(session.ListTools(t.Context(), &mcp.ListToolsParams{}))(t)
	var got, want []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
		if tool.Annotations == nil || tool.OutputSchema == nil {
			t.Errorf("%s lacks annotations or an output schema", tool.Name)
		}
	}
	for _, tool := range Registry() {
		want = append(want, tool.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

// A run reaches its folder and those below it, however its folder and the named one are made.
func TestCaller_Reach_NeverExceedsItsFolder(t *testing.T) {
	t.Parallel()
	segment := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,3}`)
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, "segments"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		own, named := path.Draw(t, "own"), path.Draw(t, "named")
		if rapid.Bool().Draw(t, "related") {
			named = own + rapid.SampledFrom([]string{"", "/", "x", "-x", "/x", "/../other", "/x/y", "+x", " ", "//"}).Draw(t, "suffix")
		}
		c := &Caller{Turn: &msg.Turn{Folder: own}}
		err := c.CheckFolder(named)
		below := named == own || strings.HasPrefix(named, own+"/")
		if err == nil && (!below || msg.ValidFolder(named) != nil) {
			t.Fatalf("%s reaches %s", own, named)
		}
		if err != nil && below && msg.ValidFolder(named) == nil {
			t.Fatalf("%s does not reach %s: %v", own, named, err)
		}
		// It passes on no more than it has.
		if child := (&Caller{Turn: &msg.Turn{Folder: named}}); err == nil {
			deeper := path.Draw(t, "deeper")
			if child.Reaches(deeper) && !c.Reaches(deeper) {
				t.Fatalf("%s reaches %s by %s", own, deeper, named)
			}
		}
	})
}
