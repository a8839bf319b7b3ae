// Package postgres runs a Postgres server on a data directory of its own, with what Debian's package postgresql
// installs. It leaves nothing on the machine, and never touches a cluster of the system.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute      // a second or two on an idle machine
	stopTimeout  = 20 * time.Second // rolls open transactions back
	pollInterval = 50 * time.Millisecond
	unprivileged = "65534" // the user without rights of every Linux
)

// Server is a running server.
type Server struct {
	dir      string
	programs string
	settings []string            // name=value
	owner    *syscall.Credential // nil for this process's user
	process  *exec.Cmd
	ended    chan struct{}
	log      bytes.Buffer // read after ended
}

// Start makes a cluster in a new folder below dir, "" for the folder of temporary files, and starts a server that
// listens on a socket in it alone. Unless a setting, name=value, says otherwise, it writes nothing to the disk at a
// commit: its data is lost with the machine, not with a process.
func Start(ctx context.Context, dir string, settings ...string) (*Server, error) {
	programs, err := Programs()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, settings: settings, ended: make(chan struct{})}
	if s.dir, err = os.MkdirTemp(dir, "postgres"); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Programs returns the folder of the newest server's programs.
func Programs() (string, error) {
	if found, err := exec.LookPath("initdb"); err == nil {
		found, err = filepath.EvalSymlinks(found) // the other programs are beside it
		return filepath.Dir(found), err
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well-formed
	if len(all) == 0 {
		return "", errors.New("no Postgres server is installed: run `make setup`, or: apt-get install -y postgresql")
	}
	slices.SortFunc(all, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(all[len(all)-1]), nil
}

func version(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // 0 for what is none
	return n
}

func (s *Server) start(ctx context.Context) error {
	if err := s.giveAway(); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	initdb := s.command(ctx, "initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding",
		"UTF8", "--locale", "C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	args := []string{"-D", data, "-k", s.dir}
	for _, setting := range slices.Concat([]string{"listen_addresses=", "fsync=off", "max_connections=300",
		"max_locks_per_transaction=128"}, s.settings) {
		args = append(args, "-c", setting)
	}
	s.process = s.command(context.WithoutCancel(ctx), "postgres", args...)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	go func() {
		defer close(s.ended)
		_ = s.process.Wait() // its output is in the log
	}()
	return s.await(ctx)
}

// giveAway makes the folder one of another user if this process is root's, as which the server does not run.
func (s *Server) giveAway() (err error) {
	if s.owner, err = Owner(); err != nil || s.owner == nil {
		return err
	}
	return os.Chown(s.dir, int(s.owner.Uid), int(s.owner.Gid))
}

// Owner is the user as whom a server runs: nil for this process's, another one if that is root.
func Owner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // as os/exec takes it
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		if owner, err = user.LookupId(unprivileged); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(owner.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(owner.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir
	// Of a process group of its own: the interrupt of a terminal is for the tests, which then stop it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Setpgid: true}
	return cmd
}

// await waits until the server takes connections.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if s.command(ctx, "pg_isready", "-q", "-h", s.dir, "-U", "postgres").Run() == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended:\n%s", s.log.String())
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w", ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// URL is that of the database postgres, whose user may do anything.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres",
		RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

// CreateDatabase creates an empty database and returns its URL.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	if out, err := s.command(ctx, "createdb", "-h", s.dir, "-U", "postgres", name).CombinedOutput(); err != nil {
		return "", fmt.Errorf("createdb %s: %w\n%s", name, err, out)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Kill ends the server as a crash does.
func (s *Server) Kill() error {
	if s.process == nil || s.process.Process == nil {
		return nil
	}
	// Immediate shutdown: its processes end without writing anything more.
	if err := s.process.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	return nil
}

// Stop ends the server with all connections, and removes its folder.
func (s *Server) Stop() error {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGINT) // it has ended already
		select {
		case <-s.ended:
		case <-time.After(stopTimeout):
			_ = s.Kill()
		}
	}
	return os.RemoveAll(s.dir)
}
