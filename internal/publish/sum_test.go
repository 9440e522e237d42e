// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
)

// sum is a writer that hashes.
type sum struct{ hash.Hash }

func sha256Writer() sum { return sum{sha256.New()} }

func (s sum) digest() string { return fmt.Sprintf("sha256:%x", s.Sum(nil)) }
