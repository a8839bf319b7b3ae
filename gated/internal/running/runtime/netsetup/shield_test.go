package netsetup

import (
	"net"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestFindLink(t *testing.T) {
	t.Parallel()
	route := func(device int, to, gateway string) netlink.Route {
		_, dst, _ := net.ParseCIDR(to)
		return netlink.Route{LinkIndex: device, Dst: dst, Gw: net.ParseIP(gateway)}
	}
	const all = "0.0.0.0/0"
	for name, tt := range map[string]struct {
		routes  []netlink.Route
		device  int // 0 for an error
		gateway string
		nets    []string
	}{
		"one default route":     {[]netlink.Route{route(2, all, "10.0.2.2"), route(2, "10.0.2.0/24", "")}, 2, "10.0.2.2", []string{"10.0.2.0/24"}},
		"it has no destination": {[]netlink.Route{route(2, "", "10.0.2.2")}, 2, "10.0.2.2", nil},
		"two default routes": {
			[]netlink.Route{
				route(2, all, "192.0.2.1"), route(3, all, "198.51.100.1"), route(2, "192.0.2.0/24", ""),
				route(3, "198.51.100.0/24", ""), route(2, "10.0.0.0/8", "192.0.2.3"),
			}, 2, "192.0.2.1", []string{"192.0.2.0/24", "10.0.0.0/8"},
		},
		"two gateways of a device": {[]netlink.Route{route(2, all, "192.0.2.1"), route(2, all, "192.0.2.2")}, 2, "192.0.2.1", nil},
		"a net before it":          {[]netlink.Route{route(2, "10.0.2.0/24", ""), route(2, all, "10.0.2.2")}, 2, "10.0.2.2", []string{"10.0.2.0/24"}},
		"no default route":         {[]netlink.Route{route(2, "10.0.2.0/24", "")}, 0, "", nil},
		"no gateway":               {[]netlink.Route{route(2, all, ""), route(3, all, "192.0.2.1")}, 0, "", nil},
		"no route":                 {nil, 0, "", nil},
	} {
		l, err := findLink(tt.routes)
		if tt.device == 0 {
			if err == nil {
				t.Errorf("%s: %+v", name, l)
			}
			continue
		}
		var nets []string
		for _, dst := range l.nets {
			nets = append(nets, dst.String())
		}
		if err != nil || l.index != tt.device || l.gateway.String() != tt.gateway || !slices.Equal(nets, tt.nets) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}
