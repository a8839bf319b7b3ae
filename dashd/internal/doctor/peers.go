package doctor

import (
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// Peers is where the other daemons are called, if not at their sockets.
type Peers struct {
	GatedURL config.URL `env:"GATED_URL"`
	RoutdURL config.URL `env:"ROUTD_URL"`
	OnbodURL config.URL `env:"ONBOD_URL"`
}

// Endpoints returns those of all daemons, further accounts included.
func (p Peers) Endpoints(environ []string) []Endpoint {
	all := []Endpoint{{"routd", p.RoutdURL}, {"gated", p.GatedURL}, {"onbod", p.OnbodURL}}
	for _, a := range daemon.Adapters() {
		all = append(all, Endpoint{Name: a.Name})
	}
	accounts, _ := daemon.Accounts(environ) // invalid ones are reported by environment
	for i := range accounts {
		all = append(all, Endpoint{Name: accounts[i].Daemon})
	}
	return all
}
