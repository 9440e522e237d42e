// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/packs"
)

// TestAnswersOfOtherServers has what git itself does not send, but other servers do.
func TestAnswersOfOtherServers(t *testing.T) {
	tree := "100644 a\x00" + string(packs.Hash(3, "1"))
	commit := fmt.Sprintf("tree %x\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx", packs.Hash(2, tree))
	pack := string(packs.Of(packs.Whole(1, commit), packs.Whole(2, tree), packs.Whole(3, "1")))
	hash := fmt.Sprintf("%x", packs.Hash(1, commit))
	half := len(pack) / 2
	cases := map[string]struct {
		reason, able string
		answer       []string
		want         fetch.Reason
	}{
		"Raw":         {"no channels", "", []string{line("NAK\n"), pack}, ""},
		"SideBand":    {"the older channels", "side-band", []string{line("NAK\n"), line("\x01" + pack), "0000"}, ""},
		"Pieces":      {"with chatter between", "side-band-64k shallow", []string{line("shallow " + hash), "0000", line("NAK\n"), line("\x02hello"), line("\x01" + pack[:half]), line("\x02 "), line("\x01" + pack[half:]), "0000"}, ""},
		"TwiceNAK":    {"some say so twice", "side-band-64k", []string{line("NAK\n"), line("NAK\n"), line("\x01" + pack), "0000"}, ""},
		"NoEnd":       {"cut between lines", "side-band-64k", []string{line("NAK\n"), line("\x01" + pack)}, fetch.InvalidContent},
		"Channel":     {"an unknown one", "side-band-64k", []string{line("NAK\n"), line("\x04" + pack), "0000"}, fetch.InvalidContent},
		"Failure":     {"it fails on the way", "side-band-64k", []string{line("NAK\n"), line("\x01" + pack[:half]), line("\x03out of \x1b[2J memory")}, fetch.Unreachable},
		"Unconfirmed": {"no acknowledgement", "", []string{line("hello\n"), pack}, fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := hostile(t, advertisement(tc.able, hash, "refs/heads/x"), func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Join(tc.answer, ""))
			})
			_, files, err := pull(t, Options{URL: url, Branch: "x"})
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") || strings.Contains(fmt.Sprint(err), "\x1b") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && files["a"] != "1" {
				t.Errorf("%s: %v", tc.reason, files)
			}
		})
	}
}

// TestM18EndlessCuts has a server that says without end where it cut the history.
func TestM18EndlessCuts(t *testing.T) {
	url := hostile(t, advertisement("shallow", someCommit, "refs/heads/x"), func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat(line("shallow "+someCommit), 1000)); err != nil {
				return
			}
		}
	})
	limits := fetch.DefaultLimits()
	limits.GitPackBytes = 1 << 20
	if _, _, err := pull(t, Options{URL: url, Branch: "x", Limits: limits}); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("got %v", err)
	}
}
