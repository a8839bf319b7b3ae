package patroni

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// status is Patroni's answer about the server of its node.
type status struct {
	Role        string `json:"role"`
	State       string `json:"state"`
	Replication []struct {
		Name      string `json:"application_name"`
		State     string `json:"state"`
		SyncState string `json:"sync_state"`
	} `json:"replication"`
}

// isPrimary reports whether the node's Patroni holds the leader's key: it is asked for that, not for the server's role.
func (n *node) isPrimary(ctx context.Context) bool {
	_, code := n.ask(ctx, "/primary")
	return code == http.StatusOK
}

// ask asks the node's Patroni. The code is 0 if it does not answer.
func (n *node) ask(ctx context.Context, path string) (s status, code int) {
	code = get(ctx, "http://"+net.JoinHostPort(n.host, restPort)+path, &s)
	return s, code
}

// get reads an answer in JSON. The code is 0 if there is none.
func get(ctx context.Context, url string, to any) (code int) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	req.Close = true // no connection outlasts a server that is killed
	res, err := new(http.Client).Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(to) != nil {
		return 0
	}
	return res.StatusCode
}

// awaitEtcd waits until the members of etcd have agreed on a version, without which Patroni ends.
func (c *Cluster) awaitEtcd(ctx context.Context) error {
	return c.await(ctx, "etcd", func() (bool, error) {
		for _, n := range c.nodes {
			var version struct {
				Cluster string `json:"etcdcluster"`
			}
			if get(ctx, "http://"+net.JoinHostPort(n.host, etcdPort)+"/version", &version) != http.StatusOK ||
				version.Cluster == "not_decided" {
				return false, nil
			}
		}
		return true, nil
	})
}

// Primary is the node whose server is the primary, unless that is the one excepted; -1 if none is.
func (c *Cluster) Primary(ctx context.Context, except int) int {
	for _, n := range c.nodes {
		if n.number != except && n.isPrimary(ctx) {
			return n.number
		}
	}
	return -1
}

// AwaitPrimary waits until the server of a node, but not the one excepted, is the primary; -1 excepts none.
func (c *Cluster) AwaitPrimary(ctx context.Context, except int) (primary int, err error) {
	err = c.await(ctx, "a primary", func() (bool, error) {
		primary = c.Primary(ctx, except)
		return primary >= 0, nil
	})
	return primary, err
}

// Synchronous is the node whose server would become the primary; -1 if none is. The server that the primary waits for
// is that only once Patroni has stored it: after a failover any may do for a while, and none takes over.
func (c *Cluster) Synchronous(ctx context.Context) int {
	for _, n := range c.nodes {
		if _, code := n.ask(ctx, "/synchronous"); code == http.StatusOK {
			return n.number
		}
	}
	return -1
}

// AwaitHealthy waits until there is one primary, which all other servers follow, one of them synchronously. It is an
// error if the Patroni of a node does not run.
func (c *Cluster) AwaitHealthy(ctx context.Context) error {
	return c.await(ctx, "all servers to follow the primary", func() (bool, error) {
		primaries, following := 0, 0
		for _, n := range c.nodes {
			if n.patroni.hasEnded() {
				return false, fmt.Errorf("the Patroni of %s has ended", n.name)
			}
			if !n.isPrimary(ctx) {
				continue
			}
			primaries++
			s, _ := n.ask(ctx, "/patroni")
			for _, standby := range s.Replication {
				if standby.State == "streaming" {
					following++
				}
			}
		}
		return primaries == 1 && following == Nodes-1 && c.Synchronous(ctx) >= 0, nil
	})
}

// await waits until a condition holds. The error contains the ends of all logs.
func (c *Cluster) await(ctx context.Context, what string, holds func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		held, err := holds()
		if held && err == nil {
			return nil
		}
		if err == nil {
			select {
			case <-ticker.C:
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		logs := ""
		for n := range c.nodes {
			logs += c.Logs(n)
		}
		return fmt.Errorf("wait for %s: %w\n%s", what, err, logs)
	}
}
