// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// A delta (gitformat-pack(5)) is the size of its base and the size of its target, both in groups of seven bits, and then
// commands: to copy a range of the base, or to insert the bytes that follow.
const (
	copyCommand = 0x80
	// implicitCopy is how much a copy command copies that states no size.
	implicitCopy = 0x10000
)

// targetSize reads the size that a delta announces, which must be one that can be rebuilt.
func targetSize(delta []byte) (int64, error) {
	_, target, _, ok := deltaSizes(delta)
	if !ok {
		return 0, malformedDelta()
	}
	if target > maxRebuilt {
		return 0, tooLargeToRebuild()
	}
	return int64(target), nil
}

func deltaSizes(delta []byte) (base, target uint64, commands []byte, ok bool) {
	base, first := binary.Uvarint(delta)
	if first <= 0 {
		return 0, 0, nil, false
	}
	target, second := binary.Uvarint(delta[first:])
	if second <= 0 {
		return 0, 0, nil, false
	}
	return base, target, delta[first+second:], true
}

// patch applies a delta. The caller has checked its targetSize, which is what patch allocates.
func patch(base, delta []byte) ([]byte, error) {
	from, to, commands, ok := deltaSizes(delta)
	if !ok || from != uint64(len(base)) {
		return nil, malformedDelta()
	}
	target := make([]byte, 0, to)
	for len(commands) > 0 {
		var piece []byte
		piece, commands = nextPiece(base, commands)
		if len(piece) == 0 || len(piece) > cap(target)-len(target) {
			return nil, malformedDelta()
		}
		target = append(target, piece...)
	}
	if uint64(len(target)) != to {
		return nil, malformedDelta()
	}
	return target, nil
}

// nextPiece carries out the first command and returns those after it; an empty piece is a malformed command.
func nextPiece(base, commands []byte) (piece, rest []byte) {
	command, rest := commands[0], commands[1:]
	if command&copyCommand != 0 {
		return copied(base, command, rest)
	}
	if len(rest) < int(command) {
		return nil, nil
	}
	return rest[:command], rest[command:]
}

// copied reads the operands of a copy command, of which the low bits say which bytes follow: four of the offset, three of
// the size, the lowest first.
func copied(base []byte, command byte, operands []byte) (piece, rest []byte) {
	var value [8]byte
	for bit := range 7 {
		if command>>bit&1 == 0 {
			continue
		}
		if len(operands) == 0 {
			return nil, nil
		}
		value[bit], operands = operands[0], operands[1:]
	}
	offset, size := int64(binary.LittleEndian.Uint32(value[:4])), int64(binary.LittleEndian.Uint32(value[4:]))
	if size == 0 {
		size = implicitCopy
	}
	if offset+size > int64(len(base)) {
		return nil, nil
	}
	return base[offset : offset+size], operands
}

func malformedDelta() error {
	return fetch.Errorf(fetch.InvalidContent, "the pack has a malformed delta")
}
