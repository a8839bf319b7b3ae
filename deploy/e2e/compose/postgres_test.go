package compose

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/postgres"
)

const (
	postgresFile = "deploy/compose/postgres.yml"
	databaseURL  = "/run/secrets/database_url"
)

func TestPostgres_Server_IsPinnedConfinedAndNotPublished(t *testing.T) {
	t.Parallel()
	p := load(t, nil, baseFile, postgresFile)
	s := p.Services["postgres"]
	if !regexp.MustCompile(`^postgres:\d+$`).MatchString(s.Image) {
		t.Errorf("image %s, want one of one major version", s.Image)
	}
	if !s.ReadOnly || s.Privileged || s.User != "1000:1000" || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 ||
		!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("user %s, read_only %v, cap_drop %v, cap_add %v, security_opt %v", s.User, s.ReadOnly, s.CapDrop, s.CapAdd, s.SecurityOpt)
	}
	if s.Logging == nil || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
		t.Error("it may write any amount of log")
	}
	if !p.Networks["database"].Internal {
		t.Error("its network leads to others")
	}
	if diff := cmp.Diff([]string{"database"}, s.NetworksByPriority()); diff != "" || len(s.Ports) > 0 {
		t.Errorf("ports %v, networks %s", s.Ports, diff)
	}
	if s.HealthCheck == nil || !slices.Contains(s.HealthCheck.Test, "--host=127.0.0.1") {
		t.Errorf("health check %+v: by the socket a server answers before there is a database", s.HealthCheck)
	}
	data := *s.Environment["PGDATA"]
	kept := slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == "volume" && v.Source == "postgres" && strings.HasPrefix(data, v.Target+"/")
	})
	if !kept {
		t.Errorf("its folder %s is in none of the volumes %+v", data, s.Volumes)
	}
}

// Every service that opens the database opens the one on the server, once it is migrated.
func TestPostgres_Daemons_UseTheServer(t *testing.T) {
	t.Parallel()
	// A URL that .env has from before does not contradict the file's.
	p := load(t, []string{"ARIZUKO_DB=postgres://ann@elsewhere/other"}, baseFile, postgresFile)
	for name, s := range p.Services {
		if name == "postgres" || name == "prepare" {
			continue
		}
		wantServer(t, s)
		networks := []string{"database", "default"}
		if name == "migrate" {
			networks = networks[:1]
		}
		if diff := cmp.Diff(networks, slices.Sorted(slices.Values(s.NetworksByPriority()))); diff != "" || s.NetworkMode != "" {
			t.Errorf("%s: network %q, %s", name, s.NetworkMode, diff)
		}
	}
	if c := p.Services["migrate"].DependsOn["postgres"].Condition; c != types.ServiceConditionHealthy {
		t.Errorf("migrate waits for postgres: %q", c)
	}
	if _, has := p.Services["migrate"].DependsOn["prepare"]; !has {
		t.Error("migrate does not wait for the data folder")
	}
	if _, has := p.Services["gated"].DependsOn["migrate"]; !has {
		t.Error("gated does not wait for migrate")
	}
}

func wantServer(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	if *s.Environment["ARIZUKO_DB"] != "" || s.Environment["ARIZUKO_DB_FILE"] == nil || *s.Environment["ARIZUKO_DB_FILE"] != databaseURL {
		t.Errorf("%s: environment %v", s.Name, s.Environment)
	}
	if !slices.ContainsFunc(s.Secrets, func(f types.ServiceSecretConfig) bool { return f.Source == "database_url" }) {
		t.Errorf("%s: secrets %+v", s.Name, s.Secrets)
	}
}

var commentedOut = regexp.MustCompile(`(?m)^( +)# (networks: |ARIZUKO_DB|- database_url)`)

// A further account has its lines for the server commented out.
func TestPostgres_Account_WithItsFourLines_UsesTheServer(t *testing.T) {
	t.Parallel()
	account := readFile(t, overrides[3])
	if n := len(commentedOut.FindAllString(account, -1)); n != 4 {
		t.Fatalf("%d lines are commented out:\n%s", n, account)
	}
	path := filepath.Join(t.TempDir(), "account.yml")
	account = commentedOut.ReplaceAllString(account, "$1$2")
	if err := os.WriteFile(path, []byte(account), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	services := load(t, nil, baseFile, postgresFile, relative).Services
	wantServer(t, services["teled-work"])
	if diff := cmp.Diff(services["teled"].Networks, services["teled-work"].Networks, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Debian's Compose, the oldest that docker-compose.yml is for, merges each of the files, too.
func TestFile_OldCompose_TakesEachOverride(t *testing.T) {
	t.Parallel()
	need.Program(t, "docker-compose", "docker-compose")
	dir := cloneDeploy(t)
	added := map[string]string{"deploy/compose/account.yml": "teled-work", "deploy/compose/postgres.yml": "postgres"}
	for _, override := range overrides {
		cmd := exec.Command("docker-compose", "-f", baseFile, "-f", override, "config", "--services")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "DOCKER_GID=998")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s", override, err, &stderr)
			continue
		}
		want := slices.Concat(daemons, oneShots)
		if service := added[override]; service != "" {
			want = append(want, service)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(strings.Fields(string(out))))); diff != "" {
			t.Errorf("%s: %s", override, diff)
		}
	}
}

// cloneDeploy copies the files that Compose reads, and makes the secrets.
func cloneDeploy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := `cp -R docker-compose.yml "$1/" && mkdir -p "$1/deploy" && cp -R deploy/compose "$1/deploy/" && "$1/deploy/compose/secrets.sh"`
	cmd := exec.Command("sh", "-ec", script, "sh", dir)
	cmd.Dir = repository(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// secrets.sh chooses a password, and does not change it later: the server has it.
func TestSecrets_DatabaseURL_IsRandomAndKept(t *testing.T) {
	t.Parallel()
	first, second := cloneDeploy(t), cloneDeploy(t)
	read := func(dir string) string {
		info, err := os.Stat(dir + "/secrets/database_url")
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		content, err := os.ReadFile(dir + "/secrets/database_url")
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	before := read(first)
	if !regexp.MustCompile(`^postgres://arizuko:[0-9a-f]{48}@postgres/arizuko\n$`).MatchString(before) || read(second) == before {
		t.Errorf("%q and %q", before, read(second))
	}
	if out, err := exec.Command(first + "/deploy/compose/secrets.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if after := read(first); after != before {
		t.Errorf("%q became %q", before, after)
	}
}

// The daemons' user in .env, where Compose finds it, owns the secrets that root makes.
func TestSecrets_MadeByRoot_BelongToTheDaemons(t *testing.T) {
	t.Parallel()
	dir := cloneDeploy(t)
	for settings, want := range map[string]int{
		"": 1000, "#ARIZUKO_UID=1000\n": 1000, "ARIZUKO_UID=1234 # ours\nARIZUKO_GID=5\n": 1234, "ARIZUKO_UID=1\nARIZUKO_UID=1234\n": 1234,
	} {
		if err := errors.Join(os.RemoveAll(dir+"/secrets"), os.WriteFile(dir+"/.env", []byte(settings), 0o600)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(dir + "/deploy/compose/secrets.sh")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "ARIZUKO_UID=") })
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var made unix.Stat_t
		if err := unix.Stat(dir+"/secrets/telegram_bot_token", &made); err != nil {
			t.Fatal(err)
		}
		if own := os.Geteuid(); own != 0 {
			want = own // only root can give files away
		}
		if int(made.Uid) != want || made.Mode&0o777 != 0o600 {
			t.Errorf("with %q: user %d, mode %o, want user %d", settings, made.Uid, made.Mode, want)
		}
	}
}

// The role that the server's first start makes has its database and nothing else, and that is all that migrate needs.
func TestPostgres_Role_OwnsItsDatabaseAlone(t *testing.T) {
	t.Parallel()
	need.Verify(t)
	need.Program(t, "psql", "postgresql-client")
	server, err := postgres.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	content, err := os.ReadFile(cloneDeploy(t) + "/secrets/database_url")
	if err != nil {
		t.Fatal(err)
	}
	super, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	socket := super.Query().Get("host")
	if out, err := makeRole(t, socket, string(content)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	askForPasswords(t, server.URL())

	own, err := url.Parse(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	own.Host, own.RawQuery = "", super.RawQuery
	for _, refused := range []struct{ what, url string }{
		{"the superuser", server.URL()},
		{"another password", strings.Replace(own.String(), "arizuko:", "arizuko:x", 1)},
		{"another database", strings.Replace(own.String(), "/arizuko?", "/postgres?", 1)},
	} {
		if conn, err := pgx.Connect(t.Context(), refused.url); err == nil {
			conn.Close(t.Context())
			t.Errorf("%s logs in", refused.what)
		}
	}
	wantRights(t, own.String())
	copyToServer(t, own.String())
}

// makeRole executes postgres.sh as the image does.
func makeRole(t *testing.T, socket, content string) (out string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "database_url")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(repository(t) + "/deploy/compose/postgres.sh")
	cmd.Env = append(os.Environ(), "ARIZUKO_DB_FILE="+path, "POSTGRES_USER=postgres", "PGHOST="+socket)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// askForPasswords makes the server ask for passwords, as that of the image does of clients on the network.
func askForPasswords(t *testing.T, super string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var file string
	if err := conn.QueryRow(t.Context(), `SHOW hba_file`).Scan(&file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("local all all scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	// The server's first process reads it a moment later.
	for range 200 {
		probe, err := pgx.Connect(t.Context(), super)
		if err != nil {
			return
		}
		_ = probe.Close(t.Context()) // a probe
		if _, err := conn.Exec(t.Context(), `SELECT pg_sleep(0.05)`); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the server asks for no password")
}

func wantRights(t *testing.T, own string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var rights, encoding, databases string
	err = conn.QueryRow(t.Context(), `SELECT concat(rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls),
		(SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()),
		(SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database WHERE datallowconn AND has_database_privilege(datname, 'CONNECT'))
		FROM pg_roles WHERE rolname = current_user`).Scan(&rights, &encoding, &databases)
	if err != nil {
		t.Fatal(err)
	}
	if rights != "fffff" || encoding != "UTF8" || databases != "arizuko" {
		t.Errorf("rights %s, encoding %s, databases %s", rights, encoding, databases)
	}
}

// copyToServer moves an instance as the page says, with the rights of the role.
func copyToServer(t *testing.T, own string) {
	t.Helper()
	bin, err := harness.Build("", "arizuko/migrations/cmd/migrate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(bin); err != nil {
			t.Error(err)
		}
	})
	data := t.TempDir()
	file := filepath.Join(t.TempDir(), "database_url")
	if err := os.WriteFile(file, []byte(own+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		env  string
		args []string
		want string
	}{
		{"ARIZUKO_DB=", []string{"up"}, ""},
		{"ARIZUKO_DB_FILE=" + file, []string{"up"}, ""},
		{"ARIZUKO_DB_FILE=" + file, []string{"copy", "--to", "server"}, "counts and checksums are the same"},
		{"ARIZUKO_DB_FILE=" + file, []string{"copy", "--to", "file"}, "counts and checksums are the same"},
	} {
		cmd := exec.Command(filepath.Join(bin, "migrate"), step.args...)
		cmd.Env = append(os.Environ(), "ARIZUKO_DATA="+data, step.env)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), step.want) {
			t.Fatalf("migrate %q: %v\n%s", step.args, err, out)
		}
	}
}

func TestPostgres_UnusableURL_NoServerStarts(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "postgres://arizuko@postgres/arizuko", "postgres://arizuko:p%40ss@postgres/arizuko", "postgres://arizuko:a'b@postgres/arizuko", "postgres://arizuko:secret@postgres/"} {
		out, err := makeRole(t, "/nonexistent", content)
		exit := new(exec.ExitError)
		if !errors.As(err, &exit) || exit.ExitCode() != 78 || !strings.Contains(out, "has to be postgres://ROLE:PASSWORD@postgres/DATABASE") {
			t.Errorf("%q: %v, %s", content, err, out)
		}
		if strings.Contains(out, "a'b") || strings.Contains(out, "p%40ss") {
			t.Errorf("the password is in the log: %s", out)
		}
	}
}
