package daemon

import (
	"context"

	"arizuko/pkg/store"
	"arizuko/pkg/wake"
)

// Waker receives the pokes of one daemon.
type Waker interface {
	// C holds one value if there were pokes since the last receive.
	C() <-chan struct{}
	Close() error
}

// poker returns the function that pokes daemons of this machine after a commit, nil where the server does it for all
// machines.
func (p *Process) poker(o Options) func(daemon string) {
	p.pokeFailed = p.countPokes()
	if store.IsServer(o.Base.Database()) {
		p.Poke = p.pokeByServer
		return nil
	}
	poker := wake.NewPoker(o.Base.RunDir(), p.pokeFailed)
	p.Stop.Add("poker", func(context.Context) error { poker.Close(); return nil })
	p.Poke = poker.Poke
	return poker.Poke
}

// pokeByServer pokes a daemon without a change of any row.
func (p *Process) pokeByServer(daemon string) {
	if err := p.Store.Write(context.Background(),
		func(tx *store.Tx) error { tx.Poke(daemon); return nil }); err != nil {
		p.pokeFailed(daemon, err)
	}
}

func (p *Process) listenForPokes(o Options) (Waker, error) {
	if store.IsServer(o.Base.Database()) {
		return store.ListenForPokes(o.Base.Database(), o.Name, func(err error) {
			p.Log.Warn("pokes cannot be received: polling until the database server answers", "err", err)
		})
	}
	return wake.Listen(o.Base.RunDir(), o.Name)
}
