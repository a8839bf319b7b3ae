package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/egress/backend"
	"arizuko/gated/internal/egress/ca"
	"arizuko/gated/internal/egress/proxy"
	"arizuko/gated/internal/egress/questions"
	"arizuko/gated/internal/egress/secrets"
	"arizuko/gated/internal/running/agents"
	"arizuko/gated/internal/running/runtime"
	pkgcli "arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// EgressConfig is the part of Config about what agents send through the proxy.
type EgressConfig struct {
	EgressAddr      config.Addr     `env:"EGRESS_ADDR" envDefault:"127.0.0.1:8086" doc:"where the egress proxy serves its health and metrics"`
	EgressProxyAddr config.Addr     `env:"EGRESS_PROXY_ADDR" envDefault:"127.0.0.1:8085" doc:"where the egress proxy takes the requests of agents with AGENT_NETWORK=ask"`
	EgressProxyURL  config.URL      `env:"AGENT_PROXY_URL" doc:"where agents in docker reach the egress proxy, as in http://172.30.0.1:8085; default: EGRESS_PROXY_ADDR"`
	EgressPrivate   config.Networks `env:"EGRESS_PRIVATE" doc:"addresses of private networks that rules and users may let agents reach, as 10.0.0.5,192.168.7.0/24; others are always refused"`
}

// bundle is the file with the certificates that programs in sandboxes trust, in the folder of the proxy's authority.
const bundle = "bundle.pem"

// egressCommand is the proxy, which gated starts, or one of the commands about it.
func egressCommand(commands pkgcli.Func) pkgcli.Func {
	return func(ctx context.Context, args []string, out io.Writer) error {
		if len(args) > 0 {
			return commands(ctx, args, out)
		}
		cfg, err := loadConfig()
		if err != nil {
			return err
		}
		return cfg.serveEgress(ctx)
	}
}

// serveEgress runs the proxy until ctx or stdin ends.
func (c *Config) serveEgress(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	p, err := daemon.Start(ctx, daemon.Options{Name: "egress", Shared: true, OnDemand: true, Base: c.Base,
		Addr: c.EgressAddr, Log: os.Stderr})
	if err != nil {
		return err
	}
	server, err := c.openProxy(p)
	if err != nil {
		p.Close()
		return err
	}
	listener, err := net.Listen("tcp", string(c.EgressProxyAddr))
	if err != nil {
		p.Close()
		return err
	}
	p.Stop.Add("proxy", func(ctx context.Context) error {
		p.Ready.Wait("start", "the proxy is stopping", nil) // runs of the next gated wait for the next proxy
		return server.Close(ctx)
	})
	return p.Run(ctx, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = listener.Close() })() // Run stops the rest once this returns
		if err := server.Serve(listener); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

func (c *Config) openProxy(p *daemon.Process) (*proxy.Proxy, error) {
	authority, err := ca.Open(c.Data, p.Log)
	if err == nil {
		err = authority.Bundle("", filepath.Join(c.Data, ca.Folder, bundle))
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "arizuko_egress_requests_total",
		Help: "Requests of agents, and connections that are not looked into, by how they ended."}, []string{"state"})
	p.Metrics.MustRegister(requests)
	gated, _ := daemon.ClientOf(c.Base, "gated", "") // the one that started this process, by its socket
	return proxy.New(proxy.Config{
		Backend: &backend.Backend{Store: p.Store, Gated: gated, Key: p.Secret, Requests: requests},
		CA:      authority, Secrets: secrets.New(c.Data), Key: backend.TokenKey(p.Secret), Allowed: c.EgressPrivate,
		Log: p.Log,
	}), err
}

// openEgress lets runs use the proxy, and the proxy ask users. root is the absolute path of the data folder.
func (g *gated) openEgress(root string, r chi.Router, redact func(string) string) {
	g.root, g.proxyNeeded = root, make(chan struct{}, 1)
	q := &questions.Questions{Store: g.Store, Asks: g.agents.Asks(), Redact: redact}
	q.Mount(r)
}

// egress is how a run reaches the outside through the proxy.
func (g *gated) egress(ctx context.Context, run msg.Run, agent groupconfig.Agent) (e agents.Egress, err error) {
	if err := g.awaitProxy(ctx); err != nil {
		return e, &runtime.MachineError{Err: err}
	}
	address, err := g.cfg.proxyAddress(agent.Runtime)
	if err != nil {
		return e, err
	}
	tools, err := url.Parse(g.cfg.toolsURLs(g.tools.addr())(agent.Runtime))
	if err != nil {
		return e, err
	}
	token := backend.RunToken(g.Secret, run.ID)
	e.Proxy, e.Hidden = string(g.cfg.EgressProxyAddr), []string{token}
	e.Bundle = filepath.Join(g.root, ca.Folder, bundle)
	e.Env = proxy.Environ("http://"+proxy.User+":"+token+"@"+address, runtime.BundlePath, tools.Hostname())
	for variable, name := range agent.Secrets {
		e.Env = append(e.Env, variable+"="+secrets.Token(backend.TokenKey(g.Secret), run.Folder, name))
	}
	return e, nil
}

// proxyAddress is where agents of a runtime reach the proxy, host:port.
func (c *EgressConfig) proxyAddress(name groupconfig.Runtime) (string, error) {
	_, port, err := net.SplitHostPort(string(c.EgressProxyAddr))
	switch {
	case name != groupconfig.Docker:
		return "127.0.0.1:" + port, err // the door of a sandbox
	case c.EgressProxyURL == "" && !reachable(string(c.EgressProxyAddr)):
		return "", &runtime.SetupError{Err: fmt.Errorf("containers do not reach the egress proxy at %s: set "+
			"EGRESS_PROXY_ADDR to an address of this machine in their network, or set AGENT_PROXY_URL",
			c.EgressProxyAddr)}
	}
	_, address, _ := strings.Cut(string(c.EgressProxyURL.Or(c.EgressProxyAddr)), "://")
	return address, err
}
