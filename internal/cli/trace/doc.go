// SPDX-License-Identifier: Apache-2.0

// Package trace has the command trace: from any object up to its deployment, source and signer.
package trace
