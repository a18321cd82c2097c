package bitfield

import "strings"

// refusals are the beginnings of error replies by which a Redis server refuses a
// command before it runs. Other error replies prove nothing: a proxy in between
// (Envoy, Twemproxy) reports its own lost upstream connections as "ERR …".
var refusals = []string{
	"OOM ", "READONLY ", "NOAUTH ", "WRONGPASS ", "NOPERM ", "LOADING ",
	"MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "MOVED ", "ASK ", "CROSSSLOT ",
	"MISCONF ", "NOREPLICAS ", "BUSY ", "WRONGTYPE ",
	"ERR unknown command", "ERR max number of clients", "ERR AUTH", "ERR invalid password",
	"ERR wrong number of arguments", "ERR bit offset", "ERR value is not an integer",
}

// Refused reports whether text, an error reply, proves that the server did not
// run the command.
func Refused(text string) bool {
	for _, prefix := range refusals {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
