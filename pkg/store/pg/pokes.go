package pg

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	pokeChannel    = "arizuko/" // with the name of the daemon behind it
	maxPokeChannel = 63         // bytes: a name in Postgres
	pokePing       = 5 * time.Second
	minPokeRetry   = 100 * time.Millisecond
	maxPokeRetry   = 5 * time.Second
	pokeWindow     = 100 * time.Millisecond
	maxPokes       = 50 // wakes in a window, far more than messages need
)

// Pokes receives the pokes of one daemon from a Postgres server: a transaction that pokes notifies its listeners, on
// all machines, once it has committed. It connects again by itself. Since pokes are lost meanwhile, there is one after
// each connect. One of a process that ends in between is lost.
type Pokes struct {
	config *pgx.ConnConfig
	listen string // the statement
	failed func(error)
	poked  chan struct{}
	stop   context.CancelFunc
	done   chan struct{}

	window time.Time // when the current one began
	count  int       // of pokes in it
}

// Listen receives the pokes of a daemon until Close. failed is called once for each time that the connection is
// lost or cannot be made, with the first error.
func Listen(database, daemon string, failed func(error)) (*Pokes, error) {
	config, err := parse(database)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Pokes{
		config: reading(config), listen: "LISTEN " + pgx.Identifier{pokeChannel + daemon}.Sanitize(), failed: failed,
		poked: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	go p.run(ctx)
	return p, nil
}

// C holds one value if there were pokes since the last receive. It is never closed.
func (p *Pokes) C() <-chan struct{} { return p.poked }

// Close stops listening.
func (p *Pokes) Close() error {
	p.stop()
	<-p.done
	return nil
}

func (p *Pokes) run(ctx context.Context) {
	defer close(p.done)
	retry, known := minPokeRetry, false
	for ctx.Err() == nil {
		connected, err := p.receive(ctx)
		if connected {
			retry, known = minPokeRetry, false
		}
		if ctx.Err() == nil && !known {
			p.failed(err)
			known = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
			retry = min(2*retry, maxPokeRetry)
		}
	}
}

// receive listens on one connection until that is lost.
func (p *Pokes) receive(ctx context.Context) (connected bool, err error) {
	conn, err := pgconn.ConnectConfig(ctx, &p.config.Config)
	if err != nil {
		return false, err
	}
	defer conn.Conn().Close()
	if _, err := conn.Exec(ctx, p.listen).ReadAll(); err != nil {
		return false, err
	}
	p.poke()
	for {
		switch err := p.wait(ctx, conn); {
		case err == nil:
			p.poke()
		case ctx.Err() != nil || !pgconn.Timeout(err):
			return true, err
		default: // nothing for a while: does the server still answer?
			if _, err := conn.Exec(ctx, "SELECT 1").ReadAll(); err != nil {
				return true, err
			}
		}
	}
}

// wait returns nil after a notification.
func (p *Pokes) wait(ctx context.Context, conn *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(ctx, pokePing)
	defer cancel()
	return conn.WaitForNotification(ctx)
}

// poke wakes the reader. Any role of the server may notify: after maxPokes within pokeWindow the next wake is at its
// end.
func (p *Pokes) poke() {
	now := time.Now()
	if now.Sub(p.window) >= pokeWindow {
		p.window, p.count = now, 0
	}
	switch p.count++; {
	case p.count <= maxPokes:
		p.wake()
	case p.count == maxPokes+1:
		time.AfterFunc(time.Until(p.window.Add(pokeWindow)), p.wake)
	}
}

func (p *Pokes) wake() {
	select {
	case p.poked <- struct{}{}:
	default:
	}
}

// notify is the statement that pokes daemons once its transaction commits, "" for none.
func notify(daemons []string) string {
	var calls []string
	for _, daemon := range daemons {
		if channel := pokeChannel + daemon; len(channel) <= maxPokeChannel {
			calls = append(calls, "pg_notify('"+strings.ReplaceAll(channel, "'", "''")+"', '')")
		}
	}
	if calls == nil {
		return ""
	}
	return "SELECT " + strings.Join(calls, ", ")
}
