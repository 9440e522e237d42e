// SPDX-License-Identifier: Apache-2.0

// Package tokenreview finds out who sends a token, by asking the API server (TokenReview), and remembers the answer for a
// moment. What a user may read or upload is decided by the caller.
package tokenreview
