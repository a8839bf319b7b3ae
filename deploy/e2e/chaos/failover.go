package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/patroni"
)

const (
	machineCount = 3
	sharedSecret = "the-secret-of-all-machines"
	// clusterInterval is the mean time between two messages: three machines, three servers and the agents run on this
	// one.
	clusterInterval = 150 * time.Millisecond
	// quiet is how long there is load without a disruption before each.
	quiet = 3 * time.Second
	// recoveryTimeout is how long all may take until everything works again after a disruption has ended.
	recoveryTimeout = 2 * time.Minute
)

// cluster is several machines that share a database on three servers, under load.
type cluster struct {
	loaded   *loadedInstance // its instance is that of the first machine
	servers  *patroni.Cluster
	machines []*machine
	written  *writing
	out      io.Writer
	saved    string // folder to which whole logs are copied in the end, if any
}

// failover disrupts machines and servers, each in every way whose name matches, and checks the outcome. logs is a
// folder for whole logs, "" for none.
func failover(ctx context.Context, bin string, seed uint64, only *regexp.Regexp, logs string, out io.Writer) (r *result,
	err error) {
	c := &cluster{
		loaded: &loadedInstance{random: rand.New(rand.NewPCG(seed, 0)), platforms: newPlatforms(),
			outages: map[string]outage{}},
		written: &writing{at: map[key]time.Time{}}, out: out, saved: logs,
	}
	defer func() { err = errors.Join(err, c.tearDown()) }()
	if err := c.setUp(ctx, bin); err != nil {
		return nil, errors.Join(err, errors.New(c.logs()))
	}
	episodes, err := c.disrupt(ctx, only)
	if err == nil {
		err = c.settle(ctx)
	}
	skip, stuck := none, ""
	switch {
	case errors.Is(err, errStuck):
		skip, stuck = allowedWhileRunning, "at the end: "+err.Error()
	case err != nil:
		fmt.Fprint(out, c.loaded.diagnostics(), c.logs())
		return nil, err
	}
	if r, err = c.loaded.conclude(out, skip, stuck); err != nil {
		return r, err
	}
	if !r.ok() {
		fmt.Fprint(out, c.logs())
	}
	answers, err := c.answers()
	printService(out, episodes, answers)
	fmt.Fprintf(out, "total: messages=%d\n", len(c.loaded.load.all))
	return r, errors.Join(err, c.failed())
}

func (c *cluster) setUp(ctx context.Context, bin string) (err error) {
	l := c.loaded
	if c.servers, err = patroni.Start(ctx, ""); err != nil {
		return err
	}
	for n := range machineCount {
		m, err := newMachine(bin, fmt.Sprintf("machine%d", n+1), c.servers)
		if err != nil {
			return err
		}
		c.machines = append(c.machines, m)
		if n > 0 {
			if err := m.share(c.machines[0], "groups", "media"); err != nil {
				return err
			}
		}
		m.instance.Env = append(m.instance.Env, settings(m.instance)...)
		m.instance.Env = append(m.instance.Env, "MAX_AGENTS=4")
	}
	l.instance = c.machines[0].instance
	for _, p := range l.platforms {
		env, err := p.Serve(l.instance.Host)
		if err != nil {
			return err
		}
		for _, m := range c.machines {
			m.instance.Env = append(m.instance.Env, env...)
		}
	}
	if err := l.instance.Migrate(); err != nil {
		return err
	}
	if l.db, err = c.openDatabase(); err != nil {
		return err
	}
	for _, m := range c.machines {
		m.supervise(ctx)
	}
	if err := c.awaitDaemons(ctx); err != nil {
		return err
	}
	return l.beginLoad(ctx, func(daemon string) (*httpx.Client, error) {
		client := httpx.NewClient(daemon, l.instance.URL(daemon), sharedSecret)
		client.DialWith(dialReady(c.machines, daemon))
		return client, nil
	}, nil)
}

// openDatabase opens the database for this program's own queries, on whichever server is the primary.
func (c *cluster) openDatabase() (*sql.DB, error) {
	return storetest.OpenSQL(patroni.URL(c.servers.Addrs()) + "&connect_timeout=2")
}

// awaitDaemons waits until all daemons run, and one of each works.
func (c *cluster) awaitDaemons(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	return harness.Await(ctx, "all daemons", func() (bool, error) {
		if err := c.failed(); err != nil {
			return false, err
		}
		for _, m := range c.machines {
			if !m.allRun() {
				return false, nil
			}
		}
		for _, name := range daemons {
			if readyMachine(ctx, c.machines, name) == nil {
				pause(ctx, time.Second)
				return false, nil
			}
		}
		return true, nil
	})
}

// working is the machine on which a daemon has its lease.
func (c *cluster) working(ctx context.Context, name string) (found *machine, err error) {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	err = harness.Await(ctx, "one "+name+" to work", func() (bool, error) {
		var place string
		err := c.loaded.db.QueryRowContext(ctx,
			`SELECT m.place FROM leases l JOIN processes m ON m.id = l.process WHERE l.name = ?`, name).Scan(&place)
		for _, m := range c.machines {
			if err == nil && m.has(place) {
				found = m
			}
		}
		return found != nil, nil // without an answer it asks again
	})
	return found, err
}

// disrupt makes all disruptions whose names match, in random order, under load.
func (c *cluster) disrupt(ctx context.Context, only *regexp.Regexp) (episodes []*episode, err error) {
	loading, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	load.Go(func() { c.send(loading) })
	defer load.Wait()
	defer stop()
	all := c.disruptions()
	c.loaded.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, d := range all {
		if !only.MatchString(d.name) {
			continue
		}
		pause(ctx, quiet)
		e, err := c.make(ctx, d)
		if err != nil {
			return episodes, fmt.Errorf("%s: %w", d.name, err)
		}
		episodes = append(episodes, e)
	}
	return episodes, nil
}

// make makes a disruption and waits until everything works again.
func (c *cluster) make(ctx context.Context, d clusterDisruption) (*episode, error) {
	e := &episode{name: d.name, began: time.Now()}
	fmt.Fprintf(c.out, "%s %s\n", e.began.Format("15:04:05"), d.name)
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	pause(ctx, d.length)
	if err := d.end(ctx); err != nil {
		return nil, err
	}
	e.ended = time.Now()
	recovering, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	if err := c.servers.AwaitHealthy(recovering); err != nil {
		return nil, err
	}
	if err := c.awaitDaemons(ctx); err != nil {
		return nil, err
	}
	if err := c.awaitAnswers(ctx, e.ended); err != nil {
		return nil, err
	}
	e.recovered = time.Now()
	fmt.Fprintf(c.out, "         works again everywhere %.1f s after it began\n", e.recovered.Sub(e.began).Seconds())
	return e, nil
}

// awaitAnswers waits until each platform has an answer to a message that was written after a time.
func (c *cluster) awaitAnswers(ctx context.Context, since time.Time) error {
	waiting, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	for _, p := range c.loaded.platforms {
		err := harness.Await(waiting, "answers on "+p.Info().Platform, func() (bool, error) {
			for _, a := range c.written.answersOf(p) {
				if a.written.After(since) {
					return true, nil
				}
			}
			pause(waiting, 200*time.Millisecond)
			return false, c.loaded.load.failure.get()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// send lets users write until ctx ends.
func (c *cluster) send(ctx context.Context) {
	random := rand.New(rand.NewPCG(c.loaded.load.random.Uint64(), 0))
	load := c.loaded.load
	for ctx.Err() == nil {
		before := len(load.all)
		if random.IntN(20) == 0 {
			load.callTools(ctx)
		} else {
			load.act(ctx)
		}
		c.written.note(load.all[before:])
		pause(ctx, time.Duration(random.Int64N(int64(2*clusterInterval))))
	}
}

// settle waits until everything is answered, and stops the daemons.
func (c *cluster) settle(ctx context.Context) (err error) {
	l := c.loaded
	if err := l.db.Close(); err != nil { // its connections may be to a former primary
		return err
	}
	if l.db, err = c.openDatabase(); err != nil {
		return err
	}
	if err := l.awaitReminders(ctx); err != nil {
		return err
	}
	if err := l.awaitIdle(ctx); err != nil {
		return err
	}
	l.stopLoad()
	stopping, cancel := context.WithTimeout(ctx, 2*stopTimeout)
	defer cancel()
	for _, m := range c.machines {
		err = errors.Join(err, m.stopDaemons(stopping))
	}
	return err
}

// answers are those of all platforms and the web chat.
func (c *cluster) answers() (all []answer, err error) {
	for _, p := range c.loaded.platforms {
		all = append(all, c.written.answersOf(p)...)
	}
	web, err := c.written.webAnswers(c.loaded.db)
	return append(all, web...), err
}

// failed reports daemons that did something no disruption excuses: ended in another way than they should, or panicked.
func (c *cluster) failed() (err error) {
	for _, m := range c.machines {
		err = errors.Join(err, m.failed())
		if panics := findPanics(m.instance); panics != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", m.name, panics))
		}
	}
	return err
}

// logs are the ends of all logs.
func (c *cluster) logs() string {
	var all strings.Builder
	for _, m := range c.machines {
		fmt.Fprintf(&all, "on %s:\n%s", m.name, logTails(m.instance))
	}
	if c.servers != nil {
		for n := range c.servers.Addrs() {
			all.WriteString(c.servers.Logs(n))
		}
	}
	return all.String()
}

// saveLogs copies whole logs to the folder for them.
func (c *cluster) saveLogs() error {
	if c.saved == "" {
		return nil
	}
	for _, m := range c.machines {
		dir := filepath.Join(c.saved, m.name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for _, name := range daemons {
			log, err := m.instance.Log(name)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name+".log"), []byte(log), 0o600); err != nil {
				return err
			}
		}
	}
	if c.servers == nil {
		return nil
	}
	return c.servers.SaveLogs(c.saved)
}

// tearDown kills and closes everything.
func (c *cluster) tearDown() error {
	l := c.loaded
	l.stopLoad()
	errs := []error{c.saveLogs()}
	for _, p := range l.platforms {
		errs = append(errs, p.Close())
	}
	if l.db != nil {
		errs = append(errs, l.db.Close())
	}
	for n := range c.machines { // the first one last: the others share its folders
		errs = append(errs, c.machines[len(c.machines)-1-n].close())
	}
	if c.servers != nil {
		errs = append(errs, c.servers.Stop())
	}
	return errors.Join(errs...)
}
