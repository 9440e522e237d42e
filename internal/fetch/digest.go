// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Digest identifies content by its checksum, written "sha256:<hex>". Only the SHA-2 family is known.
type Digest struct{ digest.Digest }

// algorithms are the checksums that a digest may use, whatever else is registered with the library.
var algorithms = []digest.Algorithm{digest.SHA256, digest.SHA384, digest.SHA512}

// ParseDigest reads "sha256:<hex>", "sha384:<hex>" or "sha512:<hex>", in lower or upper case.
func ParseDigest(text string) (Digest, error) {
	name, _, found := strings.Cut(strings.ToLower(text), ":")
	algorithm := digest.Algorithm(name)
	switch {
	case !found:
		return Digest{}, Errorf(Refused, "the digest %s has no algorithm: write sha256:<hex>", Quote(text))
	case !slices.Contains(algorithms, algorithm):
		return Digest{}, Errorf(Refused, "the digest algorithm %s is not accepted: use sha256, sha384 or sha512", Quote(name))
	}
	d, err := digest.Parse(strings.ToLower(text))
	if err != nil {
		return Digest{}, Errorf(Refused, "the digest %s is malformed: %s has %d hexadecimal digits", Quote(text), name, 2*algorithm.Size())
	}
	return Digest{d}, nil
}

// SHA256 returns the digest of data.
func SHA256(data []byte) Digest { return Digest{digest.FromBytes(data)} }

// Verify returns r with its bytes compared to the digest: the read that reaches the end fails with DigestMismatch
// when they differ. With a size of 0 or more, the read that goes beyond it, or ends short of it, fails as well.
func (d Digest) Verify(r io.Reader, size int64) io.Reader {
	return &verifier{reader: r, want: d, hash: d.Algorithm().Hash(), size: size}
}

type verifier struct {
	reader io.Reader
	want   Digest
	hash   hash.Hash
	size   int64
	read   int64
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.reader.Read(p)
	v.read += int64(n)
	if v.size >= 0 && v.read > v.size {
		return 0, Errorf(DigestMismatch, "more than the declared %d bytes came", v.size)
	}
	v.hash.Write(p[:n])
	if err == io.EOF {
		return n, v.finish()
	}
	return n, err
}

// finish returns io.EOF when all is as it should be.
func (v *verifier) finish() error {
	if v.size >= 0 && v.read != v.size {
		return Errorf(DigestMismatch, "%d bytes came instead of the declared %d", v.read, v.size)
	}
	if got := digest.NewDigest(v.want.Algorithm(), v.hash); got != v.want.Digest {
		return Errorf(DigestMismatch, "the content has the digest %s, not %s", got, v.want)
	}
	return io.EOF
}
