// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// mostOfFault is how many entries a fault names.
const mostOfFault = 20

// Fault says what keeps a channel from being one chain: exactly one entry is the newest, and replaces and skips lead from it to
// all others, as opm validate demands. It is empty for a channel without fault, and for one without entries.
func Fault(channel catalog.Channel) string {
	entries := map[string]catalog.Entry{}
	skipped := map[string]bool{}
	for _, entry := range channel.Entries {
		entries[entry.Name] = entry
		for _, name := range entry.Skips {
			skipped[name] = true
		}
	}
	heads := Heads(channel)
	switch {
	case len(entries) == 0:
		return ""
	case len(heads) == 0:
		return fmt.Sprintf("channel %q has no head: each entry is replaced or skipped by another one, so there is a cycle", channel.Name)
	case len(heads) > 1:
		return fmt.Sprintf("channel %q has %d heads, which no entry replaces or skips: %s", channel.Name, len(heads), named(heads))
	}
	seen := map[string]bool{}
	path := []string{}
	for at := heads[0]; at != ""; at = entries[at].Replaces {
		path = append(path, at)
		if seen[at] {
			return fmt.Sprintf("channel %q: replaces has a cycle: %s", channel.Name, strings.Join(path, " replaces "))
		}
		seen[at] = true
		if skipped[entries[at].Replaces] {
			break // the chain of opm validate ends where it leads to a skipped entry
		}
	}
	var stranded []string
	for name := range entries {
		if !seen[name] && !skipped[name] {
			stranded = append(stranded, name)
		}
	}
	if slices.Sort(stranded); len(stranded) > 0 {
		return fmt.Sprintf("channel %q: no chain of replaces leads from the head %s to %s, and no entry skips it", channel.Name, heads[0], named(stranded))
	}
	return ""
}

// named joins names, a bounded number of them.
func named(names []string) string {
	if more := len(names) - mostOfFault; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostOfFault], ", "), more)
	}
	return strings.Join(names, ", ")
}
