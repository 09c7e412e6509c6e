package dev.toolspan

/** A record of the contract (SPEC 2). */
public interface Model {
    /** As JSON has it: keys in the contract's spelling, absent ones left out. */
    public fun toMap(): Map<String, Any?>
}

/** One of a closed list of texts. */
public interface Choice {
    /** As the contract spells it. */
    public val text: String
}
