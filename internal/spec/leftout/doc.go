// SPDX-License-Identifier: Apache-2.0

// Package leftout finds the objects that left a bundle because the file that they were in became a link, which is not followed and
// left out of the artifact.
package leftout
