package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

const (
	// renewEvery is how often a process renews its lease, and how long an attempt may take: three may fail before the
	// lease ends.
	renewEvery = store.LeaseTime / 4
	// leaseMargin is how long before the end of its lease a process stops to work: its calls to platforms and its
	// agents have ended when another process takes over.
	leaseMargin = 2 * time.Second
	// claimEvery is how often a process that stands by looks whether it can take over.
	claimEvery = time.Second
)

// Leases are the jobs that a process does alone among those that share a database, and its own lease, which it renews.
// Nil ones are those of a process that works on a file, which it shares with no other machine: it has all there are.
type Leases struct {
	ID     int64   // of the process
	Former []int64 // processes of the same daemon and place, which this process has fenced: they run no more

	st    *store.Store
	log   *slog.Logger
	ended chan struct{} // closed with cause set when the lease has ended
	cause error
}

// join makes the process one of those that share a database, if that is on a server, and renews its lease from then on.
func (p *Process) join(ctx context.Context, o Options) error {
	if !store.IsServer(o.Base.Database()) {
		return nil
	}
	host, place, err := placeOf(o.Base)
	if err != nil {
		return err
	}
	l := &Leases{st: p.Store, log: p.Log, ended: make(chan struct{})}
	began := time.Now()
	err = p.Store.Write(ctx, func(tx *store.Tx) (err error) {
		l.ID, l.Former, err = rows.Join(tx, o.Name, place, reachable(p.Addr, host), buildinfo.Version())
		return err
	})
	if err != nil {
		return fmt.Errorf("join the processes that share the database: %w", err)
	}
	p.Store.SetProcess(l.ID)
	renewing, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); l.renew(renewing, began) }()
	p.Stop.Add("lease", func(ctx context.Context) error {
		stop()
		<-done
		return l.leave(ctx)
	})
	p.Leases = l
	if o.Shared {
		return nil
	}
	return p.standBy(ctx, o.Name)
}

// placeOf names the machine, and with the data folder the place: only one process of a daemon runs there at a time.
func placeOf(base config.Base) (host, place string, err error) {
	host = base.Host
	if host == "" {
		if host, err = os.Hostname(); err != nil {
			return "", "", fmt.Errorf("%w: set ARIZUKO_HOST to the machine's name", err)
		}
	}
	data, err := filepath.Abs(base.Data)
	return host, host + ":" + data, err
}

// reachable is where other machines call a process that listens at an address: one on all addresses by the host's name.
func reachable(listening, host string) string {
	ip, port, err := net.SplitHostPort(listening)
	if err != nil || !net.ParseIP(ip).IsUnspecified() {
		return listening
	}
	return net.JoinHostPort(host, port)
}

// Client returns a client of another daemon: at its URL if there is one; on a database that machines share, of the
// process that has the daemon's lease, wherever that is; else at its socket.
func (p *Process) Client(name string, url config.URL) *httpx.Client {
	if url == "" && p.Leases != nil {
		c := httpx.NewClient(name, "http://"+name, p.Secret)
		c.DialWith(p.Leases.dial(name))
		return c
	}
	return clientOf(p.base, name, url, p.Secret)
}

// ClientOf returns a client of a running daemon, for a command: at its URL if there is one, else at its socket in the
// data folder.
func ClientOf(base config.Base, name string, url config.URL) (*httpx.Client, error) {
	if url == "" {
		return clientOf(base, name, url, ""), nil
	}
	secret, err := base.Secret()
	return clientOf(base, name, url, secret), err
}

func clientOf(base config.Base, name string, url config.URL, secret string) *httpx.Client {
	if url == "" {
		return httpx.NewLocalClient(base.Socket(name))
	}
	return httpx.NewClient(name, string(url), secret)
}

// dial connects to the process that has a lease.
func (l *Leases) dial(lease string) httpx.Dial {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		holder, err := rows.LeaseHolder(ctx, l.st.Reader, lease)
		if err == nil && holder == nil {
			err = fmt.Errorf("%s runs on no machine", lease)
		}
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, network, holder.Addr)
	}
}

// standBy waits for the lease of the daemon's name.
func (p *Process) standBy(ctx context.Context, name string) error {
	return p.Leases.Hold(ctx, name, func(holder *rows.Process) {
		reason := name + " stands by: it takes over when the one that runs ends"
		if holder != nil {
			reason = fmt.Sprintf("%s stands by: the one on %s runs", name, holder.Place)
		}
		p.Ready.Wait("start", reason, nil)
		p.Log.Info("standing by", "reason", reason)
	})
}

// Hold waits until the process has a lease, which it keeps as long as it runs. waits is called once with who has it,
// nil if that is not known; it may be nil. Hold returns the error of ctx if that ends first, and the cause if the
// process's own lease ends.
func (l *Leases) Hold(ctx context.Context, name string, waits func(holder *rows.Process)) error {
	if l == nil {
		return nil
	}
	ticker := time.NewTicker(claimEvery)
	defer ticker.Stop()
	waited := false
	outage := store.NewOutage(l.log, "claim lease")
	for {
		held, err := l.claim(ctx, name)
		if outage.Note(ctx, err) == nil && held {
			l.log.Info("lease taken", "lease", name, "process", l.ID)
			return nil
		}
		if err == nil && !waited && waits != nil {
			holder, _ := rows.LeaseHolder(ctx, l.st.Reader, name) // who has it is only shown
			waits(holder)
			waited = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return l.cause
		case <-ticker.C:
		}
	}
}

// claim takes a lease, and reports whether it has it. It writes only if the lease is free: a write about a lease waits
// for all others, and they for it.
func (l *Leases) claim(ctx context.Context, name string) (held bool, err error) {
	holder, err := rows.LeaseHolder(ctx, l.st.Reader, name)
	if err != nil || holder != nil && holder.ID != l.ID && holder.Until >= holder.Now {
		return false, err
	}
	err = l.st.Write(ctx, func(tx *store.Tx) (err error) {
		held, err = rows.Claim(tx, name, l.ID)
		return err
	})
	return held, err
}

// Ended is closed when the process may not work any more, since another one may have taken over.
func (l *Leases) Ended() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.ended
}

// watch returns an error when the lease has ended, which ends the process.
func (l *Leases) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.Ended():
		return l.cause
	}
}

// errLeaseEnded is the cause when the database did not answer in time.
var errLeaseEnded = errors.New("the lease could not be renewed in time: another process may take over")

// renew renews the lease until ctx ends, or it has ended. On the only machine it goes on renewing instead of ending.
// began is when the call that gave it began.
func (l *Leases) renew(ctx context.Context, began time.Time) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	end := time.NewTimer(time.Until(began.Add(store.LeaseTime - leaseMargin)))
	defer end.Stop()
	type renewal struct {
		began time.Time
		alone bool
		err   error
	}
	renewed, calling, alone := make(chan renewal, 1), false, false
	outage := store.NewOutage(l.log, "renew lease")
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if calling {
				continue
			}
			calling = true
			go func() {
				attempt, cancel := context.WithTimeout(ctx, renewEvery)
				defer cancel()
				at := time.Now()
				err := l.st.RenewProcess(attempt, l.ID)
				renewed <- renewal{at, err == nil && l.alone(attempt), err}
			}()
		case r := <-renewed:
			calling = false
			if errors.Is(r.err, store.ErrFenced) {
				l.end(r.err)
				return
			}
			if outage.Note(ctx, r.err) == nil {
				alone = r.alone
				end.Reset(time.Until(r.began.Add(store.LeaseTime - leaseMargin)))
			}
		case <-end.C:
			if !alone {
				l.end(errLeaseEnded)
				return
			}
		}
	}
}

// alone reports whether all processes that share the database are of this machine and data folder: then nothing takes
// over while the server is away.
func (l *Leases) alone(ctx context.Context) bool {
	all, err := rows.Processes(ctx, l.st.Reader)
	return err == nil && !slices.ContainsFunc(all, func(p rows.Process) bool { return p.Place != all[0].Place })
}

func (l *Leases) end(cause error) {
	l.log.Error("lease ended; stopping", "process", l.ID, "err", cause)
	l.cause = cause
	close(l.ended)
}

// leave releases the process's leases, so that others take over at once. Without an answer of the database in time the
// lease ends by itself.
func (l *Leases) leave(ctx context.Context) error {
	return l.release(ctx, func(tx *store.Tx) error { return rows.LeaveProcess(tx, l.ID) })
}

// release writes what a process that ends gives up, unless others may have taken over. It returns the error of ctx if
// the database does not answer before that ends.
func (l *Leases) release(ctx context.Context, write func(*store.Tx) error) error {
	select {
	case <-l.ended:
		return nil
	default:
	}
	released := make(chan error, 1)
	go func() { released <- l.st.Write(ctx, write) }()
	select {
	case err := <-released:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
