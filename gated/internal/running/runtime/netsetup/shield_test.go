package netsetup

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// routeText is what /proc/net/route says of routes, each "device network gateway mask".
func routeText(routes ...string) string {
	text := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
	for i, route := range routes {
		words := strings.Fields(route)
		for j, word := range words[1:] {
			words[j+1] = fmt.Sprintf("%08X", binary.NativeEndian.Uint32(netip.MustParseAddr(word).AsSlice()))
		}
		text += fmt.Sprintf("%s\t%s\t%s\t0003\t0\t0\t%d\t%s\t0\t0\t0\n", words[0], words[1], words[2], i, words[3])
	}
	return text
}

func TestReadLink(t *testing.T) {
	for name, tt := range map[string]struct {
		routes          []string
		device, gateway string // "" for an error
		nets            []string
	}{
		"one default route": {
			[]string{"tap0 0.0.0.0 10.0.2.2 0.0.0.0", "tap0 10.0.2.0 0.0.0.0 255.255.255.0"}, "tap0", "10.0.2.2", []string{"10.0.2.0/24"},
		},
		"two default routes": {
			[]string{
				"eth0 0.0.0.0 192.0.2.1 0.0.0.0", "wlan0 0.0.0.0 198.51.100.1 0.0.0.0", "eth0 192.0.2.0 0.0.0.0 255.255.255.0",
				"wlan0 198.51.100.0 0.0.0.0 255.255.255.0", "eth0 10.0.0.0 192.0.2.3 255.0.0.0",
			}, "eth0", "192.0.2.1", []string{"192.0.2.0/24", "10.0.0.0/8"},
		},
		"two gateways of a device": {
			[]string{"eth0 0.0.0.0 192.0.2.1 0.0.0.0", "eth0 0.0.0.0 192.0.2.2 0.0.0.0"}, "eth0", "192.0.2.1", nil,
		},
		"a net before it": {
			[]string{"tap0 10.0.2.0 0.0.0.0 255.255.255.0", "tap0 0.0.0.0 10.0.2.2 0.0.0.0"}, "tap0", "10.0.2.2", []string{"10.0.2.0/24"},
		},
		"no default route": {[]string{"tap0 10.0.2.0 0.0.0.0 255.255.255.0"}, "", "", nil},
		"no gateway":       {[]string{"tun0 0.0.0.0 0.0.0.0 0.0.0.0"}, "", "", nil},
		"no route":         {nil, "", "", nil},
	} {
		device, l, err := readLink(routeText(tt.routes...))
		if tt.device == "" {
			if err == nil {
				t.Errorf("%s: %s %+v", name, device, l)
			}
			continue
		}
		var nets []string
		for _, prefix := range l.nets {
			nets = append(nets, prefix.String())
		}
		if err != nil || device != tt.device || l.gateway.String() != tt.gateway || !slices.Equal(nets, tt.nets) {
			t.Errorf("%s: %s %+v, %v", name, device, l, err)
		}
	}
}
