// Package patroni runs three Postgres servers, of which Patroni and etcd make a primary, its synchronous standby and
// another standby, on folders and loopback addresses of their own, with the programs of Debian's packages postgresql,
// patroni and etcd-server. It leaves nothing on the machine, and never touches a cluster of the system.
package patroni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"arizuko/pkg/testkit/link"
	"arizuko/pkg/testkit/postgres"
)

// Nodes is the number of servers: with two, the one that is left after a failover has no standby, and strictly
// synchronous it takes no writes.
const Nodes = 3

const (
	startTimeout = 2 * time.Minute // some ten seconds on an idle machine
	pollInterval = 100 * time.Millisecond
	askTimeout   = 2 * time.Second // for an answer of Patroni
	logTail      = 3000            // bytes
)

// Times of Patroni's settings, in seconds: TTL is the shortest that it takes.
const (
	TTL          = 20
	loopWait     = 2
	retryTimeout = 5
)

// Ports, below those that systems give to clients.
const (
	postgresPort  = "15432"
	restPort      = "18008"
	etcdPort      = "12379"
	etcdPeerPort  = "12380"
	linkPort      = 15500 // and those after it
	superuser     = "postgres"
	superpassword = "for-tests-only"
)

// Cluster is the servers. Its methods are not safe for concurrent use.
type Cluster struct {
	dir      string
	programs string // folder of Postgres'
	owner    *syscall.Credential
	nodes    []*node
}

// node is a machine with a server, Patroni and a member of etcd.
type node struct {
	c       *Cluster
	number  int // from 0
	name    string
	host    string
	dir     string
	links   []*link.Link // from and to other nodes
	toEtcd  []string     // addresses of the members, by links of this node
	servers string       // address of the server, by a link
	rest    string       // address of Patroni, by a link

	patroni, etcd *program
}

// Start starts a cluster in a new folder below dir, "" for the folder of temporary files, and waits until it is
// healthy. It writes nothing to the disk at a commit: its data is lost with the machine, not with processes.
func Start(ctx context.Context, dir string) (*Cluster, error) {
	for _, name := range []string{"patroni", "etcd"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w: run `make setup`, or: apt-get install -y patroni etcd-server", err)
		}
	}
	c := &Cluster{}
	var err error
	if c.programs, err = postgres.Programs(); err != nil {
		return nil, err
	}
	if c.owner, err = postgres.Owner(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp(dir, "patroni"); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	sum := crc32.ChecksumIEEE([]byte(c.dir))
	for i := range Nodes {
		n := &node{
			c: c, number: i, name: fmt.Sprintf("db%d", i+1), dir: filepath.Join(c.dir, fmt.Sprintf("db%d", i+1)),
			host: fmt.Sprintf("127.%d.%d.%d", 128|sum>>16&63, sum>>8&255, 1+sum%250+uint32(i)),
		}
		c.nodes = append(c.nodes, n)
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			return err
		}
	}
	if err := c.giveAway(c.dir); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.connect(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := errors.Join(n.startEtcd(), n.configure()); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.awaitEtcd(ctx); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.startPatroni(); err != nil {
			return err
		}
	}
	return c.AwaitHealthy(ctx)
}

// giveAway makes a folder and those in it the owner's.
func (c *Cluster) giveAway(dir string) error {
	if c.owner == nil {
		return nil
	}
	return filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, int(c.owner.Uid), int(c.owner.Gid))
	})
}

// connect makes the links: one for each way from this node to etcd, and two for the ways from others to it.
func (n *node) connect() error {
	add := func(target string) (string, error) {
		l, err := link.New(net.JoinHostPort(n.host, strconv.Itoa(linkPort+len(n.links))), target)
		if err != nil {
			return "", err
		}
		n.links = append(n.links, l)
		return l.Addr(), nil
	}
	var errs []error
	for _, member := range n.c.nodes {
		addr, err := add(net.JoinHostPort(member.host, etcdPort))
		n.toEtcd = append(n.toEtcd, addr)
		errs = append(errs, err)
	}
	var err error
	n.servers, err = add(n.addr())
	errs = append(errs, err)
	n.rest, err = add(net.JoinHostPort(n.host, restPort))
	return errors.Join(append(errs, err)...)
}

// addr is where clients reach the node's server.
func (n *node) addr() string { return net.JoinHostPort(n.host, postgresPort) }

// object is one of JSON, which YAML is a superset of.
type object map[string]any

// configure writes Patroni's configuration.
func (n *node) configure() error {
	user := func(name string) object { return object{"username": name, "password": superpassword} }
	settings := object{
		"scope": "arizuko", "name": n.name,
		"restapi": object{"listen": net.JoinHostPort(n.host, restPort), "connect_address": n.rest},
		// Not etcd3: with that, Patroni 3.0.2 of a primary that comes back late overwrites the leader's key.
		"etcd": object{"hosts": n.toEtcd, "use_proxies": true},
		"bootstrap": object{
			"dcs": object{
				"ttl": TTL, "loop_wait": loopWait, "retry_timeout": retryTimeout,
				"synchronous_mode": true, "synchronous_mode_strict": true,
				"postgresql": object{
					"use_pg_rewind": true, "use_slots": true,
					"parameters": object{"max_connections": 300, "max_locks_per_transaction": 128, "fsync": "off",
						"wal_log_hints": "on", "wal_keep_size": "256MB"},
				},
			},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C"}, "no-sync"},
		},
		"postgresql": object{
			"listen": n.addr(), "connect_address": n.servers, "data_dir": filepath.Join(n.dir, "data"),
			"bin_dir":    n.c.programs,
			"pgpass":     filepath.Join(n.dir, "pgpass"),
			"parameters": object{"unix_socket_directories": n.dir},
			"pg_hba": []string{"local all all trust", "host all all 127.0.0.0/8 trust",
				"host replication all 127.0.0.0/8 trust"},
			"authentication": object{"superuser": user(superuser), "replication": user("replicator"),
				"rewind": user("rewinder")},
		},
		"watchdog": object{"mode": "off"},
	}
	text, err := json.MarshalIndent(settings, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.settings(), text, 0o600); err != nil {
		return err
	}
	return n.c.giveAway(n.dir)
}

func (n *node) settings() string { return filepath.Join(n.dir, "patroni.yml") }

func (n *node) startPatroni() (err error) {
	n.patroni, err = n.c.run(n.dir, "patroni", n.settings())
	return err
}

func (n *node) startEtcd() (err error) {
	var members []string
	for _, member := range n.c.nodes {
		members = append(members, member.name+"=http://"+net.JoinHostPort(member.host, etcdPeerPort))
	}
	peer, client := "http://"+net.JoinHostPort(n.host, etcdPeerPort), "http://"+net.JoinHostPort(n.host, etcdPort)
	n.etcd, err = n.c.run(n.dir, "etcd", "--name", n.name, "--data-dir", filepath.Join(n.dir, "etcd"),
		"--initial-cluster", strings.Join(members, ","),
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--listen-client-urls", client,
		"--advertise-client-urls", client,
		// ms: other tests may keep the processors busy
		"--enable-v2", "--heartbeat-interval", "200", "--election-timeout", "2000")
	return err
}

// Addrs are the addresses of the servers, by node, as host:port.
func (c *Cluster) Addrs() (all []string) {
	for _, n := range c.nodes {
		all = append(all, n.addr())
	}
	return all
}

// Name is that of a node, as Patroni's commands show it.
func (c *Cluster) Name(n int) string { return c.nodes[n].name }

// URL is that of the database postgres on the servers with these addresses, of which clients use the one that takes
// writes. Its user may do anything.
func URL(addrs []string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, superpassword), Host: strings.Join(addrs, ","),
		Path:     "/postgres",
		RawQuery: "target_session_attrs=read-write&sslmode=disable",
	}
	return u.String()
}

// Logs are the ends of the logs of a node's programs.
func (c *Cluster) Logs(n int) string {
	var all strings.Builder
	for _, name := range []string{"patroni", "etcd"} {
		log, err := os.ReadFile(filepath.Join(c.nodes[n].dir, name+".log"))
		if err != nil {
			log = []byte(err.Error())
		}
		fmt.Fprintf(&all, "%s of %s:\n%s\n", name, c.nodes[n].name, log[max(0, len(log)-logTail):])
	}
	return all.String()
}

// SaveLogs copies the whole logs of all programs, and the histories of the servers' timelines, to a folder.
func (c *Cluster) SaveLogs(dir string) error {
	for _, n := range c.nodes {
		logs, err := filepath.Glob(filepath.Join(n.dir, "*.log"))
		if err != nil {
			return err
		}
		histories, err := filepath.Glob(filepath.Join(n.dir, "data", "pg_wal", "*.history"))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, n.name)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		for _, path := range append(logs, histories...) {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop kills everything and removes the folder.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range slices.Backward(c.nodes) {
		errs = append(errs, n.kill(), n.etcd.kill())
	}
	for _, n := range c.nodes {
		for _, l := range n.links {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
