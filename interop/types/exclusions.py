"""What is left out with a peer, and why: the peer's doing, shown with the peer alone or by XTypes 1.3."""

# Constructs as generate.py names them.
LEFT_OUT = {
    "cyclone": {
        "map": "the package has no maps: 'Maps not supported in the core yet' (idl/_builder.py)",
        "wchar": "the package calls it 'here for completeness, do not use' (idl/types.py)",
        "wchar discriminator": "as wchar",
        "wstring": "the package has no wide strings",
        "bitset": "the package has no bitsets",
        "mutable union": "NotImplementedError in idl/_builder.py",
        "negative literal": "it packs values as unsigned: struct.error with itself (idl/_machinery.py)",
        "enumeration of odd bits": "takes 8 bits for 9 to 15, fails below 8 (idl/_machinery.py)",
        "char discriminator": "its label is a text, which the TypeObject cannot have: struct.error with itself",
        "key discriminator": "Topic() of such a union within a structure: UNSUPPORTED, alone with itself",
        "key of derived type": "write() of a key that is a structure with a base: segmentation fault, alone with itself",
        "keys of a base's base": "write(): segmentation fault, alone with itself",
        "negative label of few bits": "write() of a union of int8 or int16 with several negative labels: BAD_PARAMETER, alone with itself",
        "default literal": "see the first literal",
        "array of an alias of an array": "one array of more dimensions to it, without a DHEADER for the elements of the outer one (§7.4.3.5.3)",
        "discriminator of 64 bits": "write() aborts the process, alone with itself",
        "union without member": "of appendable ones it reads the default discriminator, others with members after it write() refuses, alone with itself",
        "default with label": "a case of the package has labels or is the default",
        "union of all values": "TypeError 'No space in discriminated union for default value' (idl/_main.py)",
        "recursion": "Topic() of a type that contains itself: BAD_PARAMETER, alone with itself",
        "first literal that is no default": "it tells the first literal as the default, always (idl/_main.py); idlc does not",
        "hash id": "@hashid with a name: TypeError with itself; without, its TypeObject has an annotation more",
    },
    "fastdds": {
        "recursion": "no call of DynamicTypeBuilder names a type within itself",
        "map with enumeration": "keys are integers or strings: 'Inconsistent key identifier', alone with itself",
        "map with octet": "keys are integers or strings: 'Inconsistent key identifier', alone with itself",
        "collection within a collection of named types": "'Inconsistency between given header and element_identifier' as its TypeObject is made",
        "map with int8": "of several keys one is left, alone with itself",
        "map with empty key": "get_member_id_by_name(\"\"): MEMBER_ID_INVALID, alone with itself",
        "key of mutable type": "the heap is corrupted, alone with itself",
        "mutable key with large id": "a key of a mutable type with an id above 16,128: the process ends with a segmentation fault",
        "key discriminator": "a structure with such a member is keyed to it, though the member is no key: its readers match no writers",
        "second label": "set_complex_value() of a union gives it the first label of its member, whatever it had",
        "optional": "DynamicData of 3.2 writes and reads optional members as if they were none (§7.4.3.5: a flag or a header)",
        "wstring": "its length counts characters; by §7.4.3.5 it counts octets",
        "default of any value": "set_..._value(0, ...) of a default member: BAD_PARAMETER for all values but one",
        "default with label": "as default of any value",
        "union without member": "such a sample does not arrive, alone with itself",
        "default literal": "MemberDescriptor of an enumeration: a default label is BAD_PARAMETER",
        "enumeration of odd bits": "its literals have the type of 8, 16 or 32 bits, which is all there is to tell",
        "autoid": "no call of DynamicTypeBuilder tells it",
        "autoid of union": "no call of DynamicTypeBuilder tells it",
    },
}

# Those that are left out of XCDR1 alone.
LEFT_OUT_OF_XCDR1 = {
    "cyclone": {
        "enumeration of few bits": "takes 32 bits in XCDR1 for those of 8 and 16 (idl/_builder.py)",
        "optional and must_understand": "it writes the flag as bit 31 of the id (Table 34: bit 30), and takes members of final types that have it for unknown ones",
        "appendable within another": "write() of an appendable type with anything after it: BAD_PARAMETER, alone with itself",
    },
    "fastdds": {
        "must_understand with large id": "a member of a mutable type with an id above 16,128 and the flag of Table 34 is not read",
        "mutable within another": "what is aligned to 8 octets after a mutable value is misplaced: the origin of alignment is that of its last member (§7.4.1.2.2: it is restored)",
    },
}

# Those that are left out of XCDR2 alone.
LEFT_OUT_OF_XCDR2 = {
    "cyclone": {},
    "fastdds": {
        "map from strings to primitives": "no DHEADER, which maps lack only where keys are primitive, too (§7.4.3.5)",
        "collection of enumerations": "no DHEADER before elements that are enumerations or bitmasks, which are no primitive types (§7.2.2.2, §7.4.3.5)",
    },
}
