package compose

import (
	stdcmp "cmp"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/daemon"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	baseFile = "docker-compose.yml"
	dataPath = "/var/lib/arizuko"
)

var (
	daemons  = daemon.Suite()
	oneShots = []string{"first-group", "migrate", "prepare"}
	// overrides are files to be used with docker-compose.yml.
	overrides = []string{"deploy/compose/agents.yml", "deploy/compose/password.yml", "deploy/compose/slack-events.yml", "deploy/compose/account.yml",
		"deploy/compose/postgres.yml", "deploy/compose/heartbeat.yml"}
)

// repository is the top folder. Its path is not cleaned: else Go's test cache does not notice when a
// file changes.
func repository(t testing.TB) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return here + "/../../.."
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(repository(t) + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// load parses files as a Compose newer than Debian's does, with all profiles.
func load(t *testing.T, env []string, files ...string) *types.Project {
	t.Helper()
	root, err := filepath.Abs(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = filepath.Join(root, file)
	}
	options, err := cli.NewProjectOptions(files, cli.WithWorkingDirectory(root), cli.WithEnv(env), cli.WithProfiles([]string{"*"}), cli.WithName("arizuko"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestFile_Services_AreDaemonsAndOneShots(t *testing.T) {
	t.Parallel()
	p := load(t, nil, baseFile)
	want := slices.Sorted(slices.Values(slices.Concat(daemons, oneShots)))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(p.Services))); diff != "" {
		t.Error(diff)
	}
	profiles, wantProfiles := map[string][]string{}, map[string][]string{}
	for _, a := range daemon.Adapters() {
		wantProfiles[a.Name] = []string{a.Platform}
	}
	for name, s := range p.Services {
		if len(s.Profiles) > 0 {
			profiles[name] = s.Profiles
		}
	}
	if diff := cmp.Diff(wantProfiles, profiles); diff != "" {
		t.Error(diff)
	}
}

func TestFile_OnlyDashdIsPublished_OnLoopback(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, nil, baseFile).Services {
		switch {
		case name != "dashd" && len(s.Ports) > 0:
			t.Errorf("%s publishes %+v", name, s.Ports)
		case name == "dashd" && (len(s.Ports) != 2 || s.Ports[0].Target != 8083 || s.Ports[1].Target != 8087): // with hooks
			t.Errorf("dashd publishes %+v", s.Ports)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %+v", name, port)
			}
		}
		if s.NetworkMode != "" && s.NetworkMode != "none" {
			t.Errorf("%s has the network %s", name, s.NetworkMode)
		}
	}
}

// Every container is confined; exceptions are listed.
func TestFile_Services_AreConfined(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, nil, baseFile).Services {
		if !s.ReadOnly || s.Privileged || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) ||
			len(s.Devices) > 0 || s.Pid != "" || s.Ipc != "" || s.UserNSMode != "" {
			t.Errorf("%s: read_only %v, privileged %v, cap_drop %v, security_opt %v", name, s.ReadOnly, s.Privileged, s.CapDrop, s.SecurityOpt)
		}
		user, added := "1000:1000", []string(nil)
		if name == "prepare" {
			user, added = "0:0", []string{"CHOWN", "DAC_READ_SEARCH"}
		}
		if s.User != user || !slices.Equal(s.CapAdd, added) {
			t.Errorf("%s runs as %s with %v", name, s.User, s.CapAdd)
		}
		if !strings.HasPrefix(s.Image, "localhost/") || s.Build == nil {
			t.Errorf("%s may run the image %s of a registry", name, s.Image)
		}
		if s.Logging == nil || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("%s may write any amount of log", name)
		}
		if len(s.Volumes) != 1 || s.Volumes[0].Type != "bind" || s.Volumes[0].Source != dataPath || s.Volumes[0].Target != dataPath {
			t.Errorf("%s mounts %+v", name, s.Volumes)
		}
	}
}

// The engine mounts folders of the machine into the containers of agents: the data folder has the same
// path inside and outside, whatever it is.
func TestFile_DataFolder_HasOnePath(t *testing.T) {
	t.Parallel()
	p := load(t, []string{"ARIZUKO_DATA=/home/ann/data", "ARIZUKO_UID=1234", "ARIZUKO_GID=99"}, baseFile)
	for name, s := range p.Services {
		if v := s.Volumes[0]; v.Source != "/home/ann/data" || v.Target != "/home/ann/data" {
			t.Errorf("%s mounts %+v", name, v)
		}
		data := s.Environment["ARIZUKO_DATA"]
		if name != "prepare" && (data == nil || *data != "/home/ann/data" || s.User != "1234:99") {
			t.Errorf("%s has ARIZUKO_DATA=%v, user %s", name, data, s.User)
		}
	}
	if diff := cmp.Diff(types.ShellCommand{"/bin/prepare", "1234", "99", "/home/ann/data"}, p.Services["prepare"].Entrypoint); diff != "" {
		t.Error(diff)
	}
}

func TestFile_Daemons_WaitForMigrate_RestartAndReportHealth(t *testing.T) {
	t.Parallel()
	p := load(t, nil, baseFile)
	for _, name := range daemons {
		s := p.Services[name]
		if s.DependsOn["migrate"].Condition != types.ServiceConditionCompletedSuccessfully || len(s.DependsOn) != 1 {
			t.Errorf("%s depends on %+v", name, s.DependsOn)
		}
		// Daemons stop within 10 s.
		if s.Restart != "unless-stopped" || s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < 12*time.Second {
			t.Errorf("%s: restart %q, stop_grace_period %v", name, s.Restart, s.StopGracePeriod)
		}
		if !slices.Equal(s.Entrypoint, []string{"/bin/" + name}) {
			t.Errorf("%s runs %q", name, s.Entrypoint)
		}
		if s.HealthCheck == nil || !slices.Equal(s.HealthCheck.Test, []string{"CMD", "/bin/" + name, "health"}) {
			t.Errorf("%s: health check %+v", name, s.HealthCheck)
		}
	}
	for _, name := range oneShots {
		if s := p.Services[name]; s.Restart != "no" {
			t.Errorf("%s: restart %q", name, s.Restart)
		}
	}
	if c := p.Services["first-group"].DependsOn["routd"].Condition; c != types.ServiceConditionHealthy {
		t.Errorf("first-group waits for routd: %q", c)
	}
}

// setElsewhere are variables of a daemon that its service leaves at their default, and why.
var setElsewhere = map[string]string{
	"ARIZUKO_SECRET":       "migrate makes the file secret in the data folder",
	"DASH_PRINT_LINK":      "the log is where the link is looked for",
	"DASH_PASSWORD":        "deploy/compose/password.yml",
	"HEARTBEAT_URL":        "deploy/compose/heartbeat.yml",
	"SLACK_SIGNING_SECRET": "deploy/compose/slack-events.yml",
}

// ofDoctor are variables of other daemons that `dashd doctor` reads.
var ofDoctor = []string{"GATED_URL", "ONBOD_URL", "OPERATORS"}

var tableRow = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]*)`")

// variables are those of a daemon, as the reference has them.
func variables(t *testing.T, daemon string) (names []string) {
	t.Helper()
	for _, m := range tableRow.FindAllStringSubmatch(settingsOf(t, daemon), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestFile_Environment_HasEveryVariableOfTheDaemon(t *testing.T) {
	t.Parallel()
	p := load(t, nil, baseFile)
	for _, name := range daemons {
		ownURL := strings.ToUpper(name) + "_URL" // for commands, which run in the same container
		environment, known := p.Services[name].Environment, map[string]bool{}
		for _, variable := range variables(t, name) {
			known[variable], known[variable+"_FILE"] = true, true
			_, set := environment[variable]
			_, setFile := environment[variable+"_FILE"]
			_, setURL := environment[strings.TrimSuffix(variable, "_ADDR")+"_URL"]
			if !set && !setFile && !setURL && variable != ownURL && setElsewhere[variable] == "" {
				t.Errorf("%s: %s cannot be set", name, variable)
			}
		}
		for variable := range environment {
			if doctors := name == "dashd" && slices.Contains(ofDoctor, variable); !known[variable] && !doctors {
				t.Errorf("%s: %s is set, and %s does not read it", name, variable, name)
			}
		}
	}
}

// No secret is a variable: docker inspect shows those to every user of the engine.
func TestFile_Secrets_AreFiles(t *testing.T) {
	t.Parallel()
	p := load(t, []string{"DOCKER_GID=1"}, slices.Concat([]string{baseFile}, overrides)...)
	for name, s := range p.Services {
		mounted := map[string]bool{}
		for _, secret := range s.Secrets {
			mounted[stdcmp.Or(secret.Target, "/run/secrets/"+secret.Source)] = true
			if file := p.Secrets[secret.Source].File; path.Base(path.Dir(file)) != "secrets" {
				t.Errorf("%s: %s is the file %s", name, secret.Source, file)
			}
		}
		for variable, value := range s.Environment {
			if strings.Contains(variable, "TOKEN") || strings.Contains(variable, "SECRET") || strings.Contains(variable, "PASSWORD") {
				if !strings.HasSuffix(variable, "_FILE") || *value != "" && !mounted[*value] {
					t.Errorf("%s: %s=%s", name, variable, *value)
				}
			}
		}
	}
}

// The socket of the engine, which is root on the machine, is given by one file only.
func TestFile_EngineSocket_OnlyWithAgentsFile(t *testing.T) {
	t.Parallel()
	if strings.Contains(readFile(t, baseFile), "docker.sock") {
		t.Error("docker-compose.yml names the engine's socket")
	}
	p := load(t, []string{"DOCKER_GID=998"}, baseFile, overrides[0])
	for name, s := range p.Services {
		has := slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == "/var/run/docker.sock" })
		if has != (name == "gated") || len(s.GroupAdd) > 0 != has {
			t.Errorf("%s: socket %v, further groups %v", name, has, s.GroupAdd)
		}
	}
	gated := p.Services["gated"]
	if *gated.Environment["AGENT_RUNTIME"] != "docker" || *gated.Environment["AGENT_IMAGE"] != "arizuko-demo" || gated.GroupAdd[0] != "998" {
		t.Errorf("gated: %v, %v", gated.Environment, gated.GroupAdd)
	}
}

// Agents in containers reach their tools in a network that has gated and them alone.
func TestFile_Tools_OnlyInTheNetworkOfAgents(t *testing.T) {
	t.Parallel()
	if addr := *load(t, nil, baseFile).Services["gated"].Environment["GATED_MCP_ADDR"]; addr != "127.0.0.1:8084" {
		t.Errorf("without containers of agents the tools are at %s", addr)
	}
	p := load(t, []string{"DOCKER_GID=998"}, baseFile, overrides[0])
	for name, s := range p.Services {
		if _, has := s.Networks["agents"]; has != (name == "gated") {
			t.Errorf("%s: in the network of agents %v", name, has)
		}
		if name == "gated" && len(s.Ports) > 0 {
			t.Errorf("gated publishes %+v", s.Ports)
		}
	}
	gated := p.Services["gated"]
	if _, has := gated.Networks["default"]; !has {
		t.Error("gated does not reach the daemons")
	}
	for variable, want := range map[string]string{
		"AGENT_NETWORK": p.Networks["agents"].Name, "AGENT_MCP_URL": "http://gated:8084/mcp", "GATED_MCP_ADDR": "0.0.0.0:8084",
	} {
		if got := *gated.Environment[variable]; got != want {
			t.Errorf("%s=%s, want %s", variable, got, want)
		}
	}
}

func TestFile_SlackEvents_ReplaceSocketMode(t *testing.T) {
	t.Parallel()
	s := load(t, nil, baseFile, overrides[2]).Services["slakd"]
	if *s.Environment["SLACK_APP_TOKEN_FILE"] != "" || *s.Environment["SLACK_SIGNING_SECRET_FILE"] != "/run/secrets/slack_signing_secret" {
		t.Errorf("environment %v", s.Environment)
	}
	if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("ports %+v", s.Ports)
	}
}

// The service of a second account differs from the first one's in its account and its token.
func TestFile_Account_IsASecondAdapter(t *testing.T) {
	t.Parallel()
	services := load(t, nil, baseFile, overrides[3]).Services
	first, second := services["teled"], services["teled-work"]
	if *second.Environment["TELED_ACCOUNT"] != "work" || *first.Environment["TELED_ACCOUNT"] != "" {
		t.Errorf("accounts %q and %q", *first.Environment["TELED_ACCOUNT"], *second.Environment["TELED_ACCOUNT"])
	}
	if s := second.Secrets; len(s) != 1 || s[0].Source != "telegram_bot_token_work" || s[0].Target != *second.Environment["TELEGRAM_BOT_TOKEN_FILE"] {
		t.Errorf("secrets %+v, token %s", s, *second.Environment["TELEGRAM_BOT_TOKEN_FILE"])
	}
	first.Environment["TELED_ACCOUNT"], first.Secrets, first.Name = second.Environment["TELED_ACCOUNT"], second.Secrets, second.Name
	if diff := cmp.Diff(first, second, cmpopts.IgnoreUnexported(types.HealthCheckConfig{})); diff != "" {
		t.Error(diff)
	}
}

// With the name of an image in a registry all containers are of it, and pulled.
func TestFile_Image_OfARegistry_IsPulled(t *testing.T) {
	t.Parallel()
	const image = "registry.example:5000/ann/arizuko:v1.2.3"
	for name, s := range load(t, []string{"ARIZUKO_IMAGE=" + image}, baseFile).Services {
		want := image
		if name == "gated" || name == "prepare" {
			want += "-gated"
		}
		if s.Image != want || s.PullPolicy != "missing" { // the name of today for if_not_present, which 1.29.2 knows
			t.Errorf("%s: image %s, pull policy %q, want %s", name, s.Image, s.PullPolicy, want)
		}
	}
}

// A checkout, and what make dist fills, have the Dockerfile at the same place.
func TestFile_Build_FromSourceOrFolder(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for setting, context := range map[string]string{"": root, "./dist": root + "/dist"} {
		for name, s := range load(t, []string{"ARIZUKO_CONTEXT=" + setting}, baseFile).Services {
			target := "arizuko"
			if name == "gated" || name == "prepare" {
				target = "gated"
			}
			if s.Build.Context != context || s.Build.Dockerfile != "deploy/docker/Dockerfile" || s.Build.Target != target {
				t.Errorf("%s is built from %+v", name, s.Build)
			}
		}
	}
}
