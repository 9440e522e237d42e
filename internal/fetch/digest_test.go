// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestM20ParseDigest(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	cases := map[string]struct {
		reason, in, want string
	}{
		"SHA256":    {"the normal case", "sha256:" + sum, "sha256:" + sum},
		"SHA384":    {"the family", "sha384:" + strings.Repeat("ab", 48), "sha384:" + strings.Repeat("ab", 48)},
		"SHA512":    {"the family", "sha512:" + sum + sum, "sha512:" + sum + sum},
		"UpperCase": {"people paste it from Windows tools", "SHA256:" + strings.ToUpper(sum), "sha256:" + sum},
		"SHA1":      {"broken", "sha1:" + sum[:40], ""},
		"MD5":       {"broken", "md5:" + sum[:32], ""},
		"Short":     {"cut", "sha256:" + sum[:63], ""},
		"Long":      {"not that algorithm", "sha256:" + sum + "00", ""},
		"NoHex":     {"no number", "sha256:" + strings.Repeat("xy", 32), ""},
		"Bare":      {"the algorithm is part of it", sum, ""},
		"Empty":     {"nothing to verify with", "", ""},
		"NoSum":     {"nothing to verify with", "sha256:", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseDigest(tc.in)
			if tc.want == "" {
				if ReasonOf(err) != Refused {
					t.Errorf("%s: %v, %v", tc.reason, got, err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("%s: %v, %v", tc.reason, got, err)
			}
		})
	}
}

func TestM10DigestVerify(t *testing.T) {
	digest := SHA256([]byte("content"))
	cases := map[string]struct {
		reason, data string
		size         int64
		want         Reason
	}{
		"Good":        {"the normal case", "content", 7, ""},
		"UnknownSize": {"HTTP archives declare none", "content", -1, ""},
		"Other":       {"other bytes", "CONTENT", 7, DigestMismatch},
		"Short":       {"cut", "conten", 7, DigestMismatch},
		"Long":        {"streams past the declared size", "content and more", 7, DigestMismatch},
		"LongUnknown": {"other bytes", "content and more", -1, DigestMismatch},
		"Empty":       {"nothing came", "", -1, DigestMismatch},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(tc.data), iotest.DataErrReader(strings.NewReader(tc.data)),
				iotest.OneByteReader(strings.NewReader(tc.data)),
			} {
				_, err := io.ReadAll(digest.Verify(r, tc.size))
				if ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
					t.Errorf("%s: %v", tc.reason, err)
				}
			}
		})
	}
}

func TestM10DigestStopsAtTheSize(t *testing.T) {
	source := &endless{}
	_, err := io.ReadAll(SHA256(nil).Verify(source, 1000))
	if ReasonOf(err) != DigestMismatch || source.read > 1<<20 {
		t.Errorf("%d bytes were read of a blob of 1000: %v", source.read, err)
	}
}

// endless is a source that would never end; it fails after 16 MiB.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 16<<20 {
		return 0, io.EOF
	}
	e.read += len(p)
	return len(p), nil
}
