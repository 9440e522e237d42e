// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
			lines, got := NewReader(strings.NewReader(tc.stream)), []string{}
			for {
				kind, text, err := lines.Next()
				if errors.Is(err, io.EOF) && fetch.ReasonOf(err) == "" {
					break
				}
				if err != nil {
					got = []string{string(fetch.ReasonOf(err))}
					if errors.As(err, new(*RefusalError)) {
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
		lines, size := NewReader(bytes.NewReader(stream)), 0
		for {
			_, text, err := lines.Next()
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
