/** MariaDB, where it is not MySQL. */

/** Differs by necessity: MariaDB has no utf8mb4_0900_bin; this is its byte-for-byte collation that does not pad. */
export const mariadbCollation = 'utf8mb4_nopad_bin'
