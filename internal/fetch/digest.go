// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Digest identifies content by its checksum, written "sha256:<hex>". Only the SHA-2 family is known.
type Digest struct {
	algorithm string
	hex       string
}

// algorithms are the checksums that a digest may use.
var algorithms = map[string]func() hash.Hash{
	"sha256": sha256.New,
	"sha384": sha512.New384,
	"sha512": sha512.New,
}

// ParseDigest reads "sha256:<hex>", "sha384:<hex>" or "sha512:<hex>", in lower or upper case.
func ParseDigest(text string) (Digest, error) {
	algorithm, sum, found := strings.Cut(strings.ToLower(text), ":")
	create, known := algorithms[algorithm]
	switch {
	case !found:
		return Digest{}, Errorf(Refused, "the digest %s has no algorithm: write sha256:<hex>", Quote(text))
	case !known:
		return Digest{}, Errorf(Refused, "the digest algorithm %s is not accepted: use sha256, sha384 or sha512",
			Quote(algorithm))
	}
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != create().Size() {
		return Digest{}, Errorf(Refused, "the digest %s is malformed: %s has %d hexadecimal digits", Quote(text),
			algorithm, 2*create().Size())
	}
	return Digest{algorithm: algorithm, hex: sum}, nil
}

// SHA256 returns the digest of data.
func SHA256(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest{algorithm: "sha256", hex: hex.EncodeToString(sum[:])}
}

// String returns the digest in lower case.
func (d Digest) String() string { return d.algorithm + ":" + d.hex }

// Verify returns r with its bytes compared to the digest: the read that reaches the end fails with DigestMismatch
// when they differ. With a size of 0 or more, the read that goes beyond it, or ends short of it, fails as well.
func (d Digest) Verify(r io.Reader, size int64) io.Reader {
	return &verifier{reader: r, want: d, hash: algorithms[d.algorithm](), size: size}
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
	if got := fmt.Sprintf("%x", v.hash.Sum(nil)); got != v.want.hex {
		return Errorf(DigestMismatch, "the content has the digest %s:%s, not %s", v.want.algorithm, got, v.want)
	}
	return io.EOF
}
