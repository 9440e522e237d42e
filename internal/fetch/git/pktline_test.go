// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestM18Packets(t *testing.T) {
	longest := strings.Repeat("x", maxPacket-lengthDigits)
	cases := map[string]struct{ reason, stream, want string }{
		"Text":       {"four digits count themselves", "0006a\n", "-1 a\n"},
		"Empty":      {"a text without any", "0004", "-1 "},
		"Marks":      {"the end of a message and of a section", "00000001", "0 |1 "},
		"Longest":    {"as long as it may be", fmt.Sprintf("%04x%s", maxPacket, longest), "-1 " + longest},
		"TooLong":    {"longer", fmt.Sprintf("%04x%sx", maxPacket+1, longest), "InvalidContent"},
		"NoNumber":   {"no length", "00g0", "InvalidContent"},
		"Reserved":   {"a length that means nothing", "0003", "InvalidContent"},
		"HalfHead":   {"cut in the length", "00", "InvalidContent"},
		"HalfText":   {"cut in the text", "0010abc", "InvalidContent"},
		"Sign":       {"a length with a sign", "+006a\n", "InvalidContent"},
		"ItsRefusal": {"what the server says instead", "000bERR no\n", "the server says \"no\""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lines, got := newPackets(strings.NewReader(tc.stream)), []string{}
			for {
				kind, text, err := lines.next()
				if errors.Is(err, io.EOF) && fetch.ReasonOf(err) == "" {
					break
				}
				if err != nil {
					got = []string{string(fetch.ReasonOf(err))}
					if errors.As(err, new(*refusal)) {
						got = []string{err.Error()}
					}
					break
				}
				got = append(got, fmt.Sprintf("%d %s", kind, text))
			}
			if strings.Join(got, "|") != tc.want {
				t.Errorf("%s: got %.100q", tc.reason, got)
			}
		})
	}
}

func FuzzPackets(f *testing.F) {
	f.Add([]byte("0006a\n00000001"))
	f.Add([]byte("0008\x01abc000cERR none"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		lines, size := newPackets(bytes.NewReader(stream)), 0
		for {
			_, text, err := lines.next()
			if err != nil {
				break
			}
			size += lengthDigits + len(text)
		}
		if size > len(stream) {
			t.Errorf("%d bytes of lines from %d", size, len(stream))
		}
	})
}

// TestAnswersOfOtherServers has what git itself does not send, but other servers do.
func TestAnswersOfOtherServers(t *testing.T) {
	tree := "100644 a\x00" + string(hashOf(3, "1"))
	commit := fmt.Sprintf("tree %x\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx", hashOf(2, tree))
	pack := string(packOf(whole(1, commit), whole(2, tree), whole(3, "1")))
	hash := fmt.Sprintf("%x", hashOf(1, commit))
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
