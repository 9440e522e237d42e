// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"bytes"
	"encoding/json"

	"github.com/notaryproject/notation-go/verifier/trustpolicy"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify"
)

// maxPolicyBytes bounds the trust policy, because its statements and identities are compared with one another.
const maxPolicyBytes = 64 << 10

// parsePolicy reads a trust policy. An empty one trusts no signer, and is refused so that it is noticed.
func parsePolicy(data []byte) (*trustpolicy.Document, error) {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fetch.Errorf(fetch.Refused, "%w, as there is no trust policy: store it as the entry %s of the Secret", verify.ErrNoTrust, PolicyName)
	case len(data) > maxPolicyBytes:
		return nil, fetch.Errorf(fetch.Refused, "the trust policy has %d bytes: %d are the limit", len(data), maxPolicyBytes)
	}
	var policy trustpolicy.Document
	if err := json.Unmarshal(data, &policy); err != nil {
		return nil, fetch.Errorf(fetch.Refused, "the trust policy is not valid JSON, or not a trust policy")
	}
	if err := verify.Guard(policy.Validate); err != nil {
		return nil, refusedPolicy(err)
	}
	return &policy, nil
}

func refusedPolicy(err error) error {
	return fetch.Errorf(fetch.Refused, "the trust policy is malformed: %s", verify.Text(err.Error()))
}
