package groupconfig

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const full = `{
	"assistant_name": "Eng", "observe": "all", "long": "file", "progress": "status", "tool_input": true, "steer": "queue", "budget": {"turn_usd": 0.5, "day_usd": 20},
	"access": ["telegram:42", "slack+work:U0AB"], "rate": 0, "reach": "none", "pin": "operators", "approvers": ["telegram:42"],
	"roles": {"operate": "everyone"},
	"agent": {"runtime": "docker", "image": "reg.example/a:1", "command": "exec me", "model": "m1", "env": ["KEY"], "settings": {"CLAUDE_MODEL": "m2"}},
	"limits": {"memory": "1536m", "cpus": 1.5, "pids": 64},
	"timeouts": {"timeout": "30m", "idle": "0s", "transcribe": "2m"},
	"transcribe": "whisper-cli -f {file}"
}`

func TestParse(t *testing.T) {
	got, err := Parse(json.RawMessage(full))
	if err != nil {
		t.Fatal(err)
	}
	var never Duration
	noLimit := 0
	want := Config{
		AssistantName: "Eng", Observe: ObserveAll, Long: LongFile, Progress: ProgressStatus, ToolInput: true, Steer: SteerQueue, Budget: Budget{TurnUSD: 0.5, DayUSD: 20},
		Roles: Roles{Ask: only("telegram:42", "slack+work:U0AB"), Approve: only("telegram:42"), Operate: only(Everyone)},
		Rate:  &noLimit, Reach: ReachNone, Pin: PinOperators,
		Agent: Agent{
			Runtime: Docker, Image: "reg.example/a:1", Command: "exec me", Model: "m1",
			Env: []string{"KEY"}, Settings: map[string]string{"CLAUDE_MODEL": "m2"},
		},
		Limits:   Limits{Memory: 1536 << 20, CPUs: 1.5, PIDs: 64},
		Timeouts: Timeouts{Timeout: Duration(30 * time.Minute), Idle: &never, Transcribe: Duration(2 * time.Minute)},

		Transcribe: "whisper-cli -f {file}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Settings that are not checked must not be used.
func TestParse_NameTwice_LastCounts(t *testing.T) {
	got, err := Parse(json.RawMessage(`{"agent":{"env":["TELEGRAM_BOT_TOKEN"],"settings":{"PATH":"/x"}},"rate":3,"agent":{"model":"m"},"rate":4}`))
	if diff := cmp.Diff(Config{Agent: Agent{Model: "m"}, Rate: new(4)}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestMarshal checks that a configuration survives a round trip.
func TestMarshal(t *testing.T) {
	for _, raw := range []string{full, `{}`, `{"access":[]}`, `{"access":"everyone"}`, `{"approvers":"operators"}`, `{"approvers":"everyone"}`, `{"timeouts":{"timeout":"1h30m5s","idle":"2h0m0s"}}`} {
		config, err := Parse(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if diff := cmp.Diff(config, again); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	text, _ := json.Marshal(Config{Timeouts: Timeouts{Timeout: Duration(2 * time.Hour)}, Limits: Limits{Memory: 2 << 30}})
	if want := `{"limits":{"memory":"2g"},"timeouts":{"timeout":"2h"}}`; string(text) != want {
		t.Errorf("written as %s, want %s", text, want)
	}
}

func TestProblems(t *testing.T) {
	tests := map[string][]string{
		`[]`:                        {"must be a JSON object"},
		`null`:                      {"must be a JSON object"},
		`{`:                         {"must be a JSON object"},
		``:                          {"must be a JSON object"},
		`{"observe":"some"}`:        {"observe: must be one of [all shared none]"},
		`{"observe":null}`:          {"observe: must be a text"},
		`{"assistant_name":7}`:      {"assistant_name: must be a text"},
		`{"assistant_name":"a\nb"}`: {"assistant_name: must be one line"},
		`{"access":"telegram:42"}`:  {`access: must be "everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`},
		`{"approvers":"all"}`:       {`approvers: must be "everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`},
		`{"approvers":["Dan"]}`:     {`approvers: "Dan" is no sender id: want platform:user, as in telegram:42`},
		`{"access":null}`:           {`access: must be "everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`},
		`{"access":[7]}`:            {`access: must be "everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`},
		`{"access":["Dan","telegram:","a:b c","x:1","telegram:*"]}`: {
			`access: "Dan" is no sender id: want platform:user, as in telegram:42`,
			`access: "a:b c" is no sender id: want platform:user, as in telegram:42`,
			`access: "telegram:" is no sender id: want platform:user, as in telegram:42`,
			`access: "telegram:*" is a pattern: name each sender`,
		},
		`{"rate":-1}`:                       {"rate: must be a number from 0 to 10000"},
		`{"rate":1.5}`:                      {"rate: must be a number from 0 to 10000"},
		`{"rate":null}`:                     {"rate: must be a number from 0 to 10000"},
		`{"transcribe":" "}`:                {"transcribe: must not be blank; leave it out for no transcripts"},
		`{"transcribe":"whisper-cli"}`:      {"transcribe: must have {file} where the audio file goes, as in whisper-cli -f {file}"},
		`{"timeouts":{"transcribe":"11m"}}`: {"timeouts.transcribe: must be from 1s to 10m0s"},
		`{"timeouts":{"transcribe":"1ms"}}`: {"timeouts.transcribe: must be from 1s to 10m0s"},
		`{"budget":5}`:                      {"budget: must be a JSON object"},
		`{"budget":{"days_usd":1}}`:         {`unknown setting "budget.days_usd"; did you mean budget.day_usd?`},
		`{"budget":{"day_usd":0,"turn_usd":"5"}}`: {
			"budget.day_usd: must be a number from 0.01 to 100000", "budget.turn_usd: must be a number from 0.01 to 100000",
		},
		`{"steer":"now"}`:          {"steer: must be one of [fold queue]"},
		`{"reach":"all"}`:          {"reach: must be one of [world none]"},
		`{"pin":"none"}`:           {"pin: must be one of [everyone operators]"},
		`{"acess":[]}`:             {`unknown setting "acess"; did you mean roles.ask?`},
		`{"agent":"x"}`:            {"agent: must be a JSON object"},
		`{"assistant":"x"}`:        {`unknown setting "assistant"; did you mean assistant_name?`},
		`{"model":"x"}`:            {`unknown setting "model"; did you mean agent.model?`},
		`{"agent":{"setings":{}}}`: {`unknown setting "agent.setings"; did you mean agent.settings?`},
		`{"limits":{"cpu":1}}`:     {`unknown setting "limits.cpu"; did you mean limits.cpus?`},
		`{"Observe":"all"}`:        {`unknown setting "Observe"; did you mean observe?`},
		`{"agent":{"runtime":"podman","image":"--privileged","command":7}}`: {
			"agent.command: must be a text", `agent.image: "--privileged" must be one word`,
			"agent.runtime: must be one of [process bwrap docker]",
		},
		`{"agent":{"image":"a b"}}`:                           {`agent.image: "a b" must be one word`},
		`{"agent":{"command":"a\u0000b"}}`:                    {"agent.command: must have at most 4096 bytes and no NUL byte"},
		`{"agent":{"runtime":"bwrap","image":"a"}}`:           {"agent.image: needs the runtime docker, not bwrap"},
		`{"agent":{"runtime":"process"},"limits":{"pids":9}}`: {"limits: need the runtime docker, not process"},
		`{"agent":{"env":["TELEGRAM_BOT_TOKEN","SLACK_APP_TOKEN_FILE","A=B","OK"]}}`: {
			`agent.env: "A=B" is not a variable name`,
			"agent.env: SLACK_APP_TOKEN_FILE is a secret of arizuko and is not passed to agents",
			"agent.env: TELEGRAM_BOT_TOKEN is a secret of arizuko and is not passed to agents",
		},
		`{"agent":{"env":"KEY"}}`:               {"agent.env: must be a list of variable names"},
		`{"agent":{"settings":{"A":1}}}`:        {"agent.settings: must be an object of texts"},
		`{"agent":{"settings":{"A":"\u0000"}}}`: {"agent.settings.A: must have at most 4096 bytes and no NUL byte"},
		`{"agent":{"secrets":{"A":"key","B":"key.refresh","C":"key.other"}}}`: {
			`agent.secrets: secret "key.other": want a name of up to 64 letters, digits, - and _`},
		`{"agent":{"settings":{"":"x"}}}`:                  {`agent.settings: "" is not a variable name`},
		`{"agent":{"settings":{"LD_PRELOAD":"/x"}}}`:       {"agent.settings: LD_PRELOAD changes the programs that run agents"},
		`{"agent":{"settings":{"DOCKER_HOST":"tcp://x"}}}`: {"agent.settings: DOCKER_HOST changes the programs that run agents"},
		`{"agent":{"settings":{"ARIZUKO_RUN":"7","HOME":"/"}}}`: {
			"agent.settings: ARIZUKO_RUN is set by gated", "agent.settings: HOME is set by gated",
		},
		`{"limits":{"memory":512}}`:               {`limits.memory: must be an amount of memory, as in "512m" or "2g"`},
		`{"limits":{"memory":"-1g"}}`:             {`limits.memory: must be an amount of memory, as in "512m" or "2g"`},
		`{"limits":{"memory":"1k"}}`:              {"limits.memory: must be from 6m to 1048576g"},
		`{"limits":{"cpus":0,"pids":1.5}}`:        {"limits.cpus: must be a number from 0.01 to 1024", "limits.pids: must be a number from 4 to 4194304"},
		`{"timeouts":{"timeout":"0s"}}`:           {"timeouts.timeout: must be from 1s to 168h0m0s"},
		`{"timeouts":{"timeout":5,"idle":"-1s"}}`: {"timeouts.idle: must be from 0s to 168h0m0s", `timeouts.timeout: must be a duration, as in "90s" or "20m"`},
		`{"timeouts":{"idle":"5"}}`:               {`timeouts.idle: must be a duration, as in "90s" or "20m"`},
		`{"timeouts":{"idle":"5","timeout":"30m","idel":1},"rate":"x"}`: { // each on its own, in any order
			"rate: must be a number from 0 to 10000", `timeouts.idle: must be a duration, as in "90s" or "20m"`,
			`unknown setting "timeouts.idel"; did you mean timeouts.idle?`,
		},
		`{"agent.name":"x"}`:                                 {`unknown setting "agent.name"; did you mean agent.name?`},
		`{"agent":{"model":null}}`:                           {"agent.model: must be a text"},
		`{"limits":null}`:                                    {"limits: must be a JSON object"},
		`{"agent":{"env":["A",7]}}`:                          {"agent.env: must be a list of variable names"},
		`{"access":["everyone"]}`:                            {`access: must be "everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`},
		`{"roles":{"ask":"operators"},"access":[]}`:          {"roles.ask: is set twice: remove access, its former name"},
		`{"roles":{"approve":null},"approvers":[]}`:          {"roles.approve: is set twice: remove approvers, its former name"},
		`{"roles":{"asks":[]}}`:                              {`unknown setting "roles.asks"; did you mean roles.ask?`},
		`{"roles":["telegram:42"]}`:                          {"roles: must be a JSON object"},
		`{"roles":{"access":[]}}`:                            {`unknown setting "roles.access"; did you mean roles.ask?`},
		`{"roles":{"ask":[{"who":"a:1","tools":["Bash"]}]}}`: {"roles.ask: a:1: only the role approve can be limited to hosts or tools"},
		`{"roles":{"approve":[{"who":"a:1","hosts":["https://x"]},{"who":"a:2","hosts":[]}]}}`: {
			`roles.approve: a:1: want hosts or tools, as in "hosts": ["api.github.com"], "tools": ["Bash"]`,
			`roles.approve: a:2: want hosts or tools, as in "hosts": ["api.github.com"], "tools": ["Bash"]`,
		},
		`{"approvers":["everyone"]}`: {
			`approvers: must be "everyone", "operators", "platform admins" or a list of sender ids, as in ["telegram:42"]`,
		},
	}
	for raw, want := range tests {
		config, err := Parse(json.RawMessage(raw))
		var got Problems
		if !errors.As(err, &got) {
			t.Errorf("%s: %v", raw, err)
		}
		if diff := cmp.Diff(Problems(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
		if diff := cmp.Diff(Config{}, config); diff != "" {
			t.Errorf("%s: an invalid configuration was used in part: %s", raw, diff)
		}
	}
}

// TestPaths holds the suggested paths to the fields of Config.
func TestPaths(t *testing.T) {
	var want []string
	var walk func(prefix string, of reflect.Type)
	walk = func(prefix string, of reflect.Type) {
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			want = append(want, prefix+name)
			if field.Type.Kind() == reflect.Struct {
				walk(prefix+name+".", field.Type)
			}
		}
	}
	walk("", reflect.TypeFor[Config]())
	got := paths()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCheckEnv_DaemonSecrets_AreRefused checks that no variable that a daemon declares as a secret can be passed to
// agents.
func TestCheckEnv_DaemonSecrets_AreRefused(t *testing.T) {
	declared := regexp.MustCompile(`env:"(\w+)[^"]*" secret:"true"`)
	files, err := filepath.Glob("../../*/config.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../config/base.go") {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			found++
			if CheckEnv(m[1]) == nil || CheckEnv(m[1]+"_FILE") == nil {
				t.Errorf("%s of %s can be passed to agents", m[1], file)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d secrets found: does the test still match how they are declared?", found)
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "_x", "HTTP_PROXY"} {
		if err := CheckEnv(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOver(t *testing.T) {
	idle, own := Duration(time.Minute), Duration(0)
	instance := Config{
		AssistantName: "ari",
		Agent:         Agent{Runtime: Process, Command: "demo", Image: "std", Env: []string{"KEY"}},
		Limits:        Limits{Memory: 2 << 30, CPUs: 1, PIDs: 512},
		Timeouts:      Timeouts{Timeout: Duration(20 * time.Minute), Idle: &idle},
	}
	none := map[string]string{}
	tests := []struct {
		name        string
		group, want Config
	}{
		{"nothing said", Config{}, Config{
			AssistantName: "ari", Observe: ObserveShared, Long: LongParts, Steer: SteerFold,
			Agent:  Agent{Runtime: Process, Command: "demo", Env: []string{"KEY"}, Settings: none},
			Limits: instance.Limits, Timeouts: instance.Timeouts,
		}},
		{"an image means docker, without the machine's command", Config{Agent: Agent{Image: "mine"}}, Config{
			AssistantName: "ari", Observe: ObserveShared, Long: LongParts, Steer: SteerFold,
			Agent:  Agent{Runtime: Docker, Image: "mine", Env: []string{"KEY"}, Settings: none},
			Limits: instance.Limits, Timeouts: instance.Timeouts,
		}},
		{"docker takes the instance's image", Config{Agent: Agent{Runtime: Docker, Command: "in it"}}, Config{
			AssistantName: "ari", Observe: ObserveShared, Long: LongParts, Steer: SteerFold,
			Agent:  Agent{Runtime: Docker, Image: "std", Command: "in it", Env: []string{"KEY"}, Settings: none},
			Limits: instance.Limits, Timeouts: instance.Timeouts,
		}},
		{"all said", Config{
			AssistantName: "Eng", Observe: ObserveNone, Long: LongParts, Steer: SteerFold,
			Agent:  Agent{Runtime: Bwrap, Command: "mine", Model: "m", Env: []string{"OTHER", "KEY"}, Settings: map[string]string{"A": "b"}},
			Limits: Limits{Memory: 1 << 30, CPUs: 2, PIDs: 9}, Timeouts: Timeouts{Timeout: 1, Idle: &own},
		}, Config{
			AssistantName: "Eng", Observe: ObserveNone, Long: LongParts, Steer: SteerFold,
			Agent:  Agent{Runtime: Bwrap, Command: "mine", Model: "m", Env: []string{"KEY", "OTHER"}, Settings: map[string]string{"A": "b"}},
			Limits: Limits{Memory: 1 << 30, CPUs: 2, PIDs: 9}, Timeouts: Timeouts{Timeout: 1, Idle: &own},
		}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.group.Over(instance)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestVariables(t *testing.T) {
	agent := Agent{Model: "m", Settings: map[string]string{"B": "2", "A": "x=y"}}
	if diff := cmp.Diff([]string{"A=x=y", "AGENT_MODEL=m", "B=2"}, agent.Variables()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	agent.Settings["AGENT_MODEL"] = "own"
	if diff := cmp.Diff([]string{"A=x=y", "AGENT_MODEL=own", "B=2"}, agent.Variables()); diff != "" {
		t.Errorf("a setting of that name (-want +got):\n%s", diff)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "7": 7, "1k": 1 << 10, "512M": 512 << 20, "2g": 2 << 30} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
		var again Bytes
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%s is written as %s", text, b)
		}
	}
	for _, text := range []string{"", "k", "1.5g", "-1", "1t", "1 g", "99999999999g", "9223372036854775808"} {
		if err := new(Bytes).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestProgress_NotSet_IsByChat(t *testing.T) {
	for _, in := range []struct {
		set     Progress
		private bool
		want    Progress
	}{
		{"", true, ProgressLive},
		{"", false, ProgressStatus},
		{ProgressOff, true, ProgressOff},
		{ProgressStatus, true, ProgressStatus},
		{ProgressLive, false, ProgressLive},
	} {
		if got := in.set.In(in.private); got != in.want {
			t.Errorf("%q, private %t: %q, want %q", in.set, in.private, got, in.want)
		}
	}
}
