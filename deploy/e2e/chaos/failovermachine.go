package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/link"
	"arizuko/pkg/testkit/patroni"
)

// restartDelay is how long a supervisor waits before it starts a daemon again.
const restartDelay = time.Second

// machine is a data folder with an address, daemons with a supervisor each, and its own way to each database server.
type machine struct {
	name     string
	instance *harness.Instance
	links    []*link.Link // to the servers
	mounts   []string     // folders that it shares with the first machine

	supervisors sync.WaitGroup
	stop        context.CancelFunc // of the supervisors

	mu      sync.Mutex // of the instance's processes, too
	down    bool       // its daemons are not started
	failure error      // of a supervisor, or a daemon that ended in a way in which none may
}

// newMachine makes a machine whose database is on the servers.
func newMachine(bin, name string, servers *patroni.Cluster) (*machine, error) {
	i, err := harness.New(bin)
	if err != nil {
		return nil, err
	}
	m := &machine{name: name, instance: i, stop: func() {}}
	var addrs []string
	for n, addr := range servers.Addrs() {
		l, err := link.New(net.JoinHostPort(i.Host, strconv.Itoa(15432+n)), addr)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.links = append(m.links, l)
		addrs = append(addrs, l.Addr())
	}
	i.UseDatabase(patroni.URL(addrs))
	i.Env = append(i.Env, "ARIZUKO_HOST="+name, "ARIZUKO_SECRET="+sharedSecret)
	return m, nil
}

// share makes folders of the data folder those of another machine, as a file server does.
func (m *machine) share(with *machine, folders ...string) error {
	for _, folder := range folders {
		source, target := filepath.Join(with.instance.Data, folder), filepath.Join(m.instance.Data, folder)
		for _, dir := range []string{source, target} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w: this runs as root; in a container, with --privileged", target, err)
		}
		m.mounts = append(m.mounts, target)
	}
	return nil
}

// supervise starts all daemons, and each again when it ends, until stopSupervisors.
func (m *machine) supervise(ctx context.Context) {
	ctx, m.stop = context.WithCancel(ctx)
	for _, name := range daemons {
		m.supervisors.Go(func() {
			for ctx.Err() == nil {
				if p := m.startUnlessDown(name); p != nil {
					select {
					case <-ctx.Done():
						return
					case <-p.Done():
						m.noteEnd(name, p)
					}
				}
				pause(ctx, restartDelay)
			}
		})
	}
}

func (m *machine) stopSupervisors() {
	m.stop()
	m.supervisors.Wait()
}

func (m *machine) startUnlessDown(name string) *harness.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil
	}
	if err := m.instance.Start(name); err != nil {
		m.failure = errors.Join(m.failure, err)
		return nil
	}
	return m.instance.Process(name)
}

// noteEnd notes a daemon that ended by itself in another way than for want of its lease or its database.
func (m *machine) noteEnd(name string, p *harness.Process) {
	const failed, unavailable = 1, 75 // exit codes
	code := p.State().ExitCode()
	if p.Killed() || code == failed || code == unavailable {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = errors.Join(m.failure, fmt.Errorf("%s on %s ended: %s\n%s", name, m.name, p.State(),
		m.instance.LogTail(name, logTail)))
}

// failed reports daemons of the machine that have ended for no known reason.
func (m *machine) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failure
}

// allRun reports whether all daemons run.
func (m *machine) allRun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range daemons {
		if !m.instance.Running(name) {
			return false
		}
	}
	return true
}

// signal sends a signal to daemons.
func (m *machine) signal(s syscall.Signal, names ...string) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if p := m.instance.Process(name); p != nil {
			err = errors.Join(err, p.Signal(s))
		}
	}
	return err
}

// kill kills all daemons and agents at once, as the end of a machine does, until revive.
func (m *machine) kill() (err error) {
	if err := m.signal(syscall.SIGSTOP, daemons...); err != nil { // no further agents
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = true
	agents := harness.Children(m.instance.Process("gated").PID())
	for _, name := range daemons {
		err = errors.Join(err, m.instance.Kill(name))
	}
	for _, pid := range agents {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // a group of its own, if it has one
		_ = syscall.Kill(pid, syscall.SIGKILL)  // it may have ended with gated
	}
	return err
}

func (m *machine) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = false
}

// cutOff cuts the machine off from the servers, or heals that with link.None.
func (m *machine) cutOff(cut link.Cut) {
	for _, l := range m.links {
		l.Set(cut)
	}
}

// stopDaemons stops the daemons as an operator does. Each must be running.
func (m *machine) stopDaemons(ctx context.Context) error {
	m.stopSupervisors()
	if err := m.instance.StopAll(ctx); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

// close kills everything.
func (m *machine) close() error {
	m.stopSupervisors()
	var errs []error
	for _, name := range m.instance.Started() {
		errs = append(errs, m.instance.Kill(name))
	}
	for _, l := range m.links {
		errs = append(errs, l.Close())
	}
	for _, mounted := range m.mounts {
		if err := syscall.Unmount(mounted, syscall.MNT_DETACH); err != nil {
			// its content is not the machine's
			return errors.Join(append(errs, fmt.Errorf("unmount %s: %w", mounted, err))...)
		}
	}
	return errors.Join(append(errs, m.instance.Close())...)
}

// place reports whether a process's place is on this machine.
func (m *machine) has(place string) bool {
	host, _, _ := strings.Cut(place, ":")
	return host == m.name
}

// readyMachine is the first of the machines on which a daemon is ready, nil for none.
func readyMachine(ctx context.Context, machines []*machine, daemon string) *machine {
	for _, m := range machines {
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		status, _ := m.instance.Readiness(asking, daemon)
		cancel()
		if status == http.StatusOK {
			return m
		}
	}
	return nil
}

// dialReady connects to the first of the machines on which a daemon is ready, as a reverse proxy does.
func dialReady(machines []*machine, daemon string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		m := readyMachine(ctx, machines, daemon)
		if m == nil {
			return nil, fmt.Errorf("%s is ready on no machine", daemon)
		}
		return new(net.Dialer).DialContext(ctx, network, m.instance.Addr(daemon))
	}
}
